"""Windows: their printed form, their shapes, their taps."""

import numpy as np
import pytest

import cenote
from cenote import Adaptive, Global, Sliding


@pytest.mark.parametrize(
    ("windows", "shape", "text"),
    [
        (Sliding((3, 3), 2, 1), (8, 64, 112, 112), "8x64x112x112 -> 8x64x56x56, sliding 3x3 stride 2 padding 1"),
        (Sliding(2, axes=(1, 2)), (1, 4, 4, 3), "1x4x4x3 -> 1x2x2x3, sliding 2x2 stride 2 axes 1,2"),
        (Sliding((2, 2), 2, "same"), (5, 5), "5x5 -> 3x3, sliding 2x2 stride 2 padding (0,1)"),
        (Sliding((3,), 2, 0, 2, True), (8,), "8 -> 3, sliding 3 stride 2 dilation 2 ceil"),
        (Adaptive((7, 7)), (3, 30, 40), "3x30x40 -> 3x7x7, adaptive 7x7"),
        (Global(2), (3, 30, 40), "3x30x40 -> 3x1x1, global"),
        (Global(2, keepdims=False), (3, 30, 40), "3x30x40 -> 3, global"),
    ],
)
def test_a_geometry_prints_what_it_does(windows, shape, text):
    geometry = cenote.resolve(windows, shape)
    assert str(geometry) == repr(geometry) == text
    assert geometry.input_shape == shape and geometry.output_shape == cenote.output_shape(windows, shape)
    assert geometry == cenote.resolve(windows, list(shape)) and geometry != cenote.resolve(windows, (*shape[:-1], shape[-1] * 2))


def test_a_geometry_stands_where_windows_stand(random):
    x = random.standard_normal((2, 8, 8))
    geometry = cenote.resolve(Sliding((2, 2)), x.shape)
    np.testing.assert_array_equal(cenote.forward(cenote.Max(), geometry, x), cenote.max_pool(x, (2, 2)))
    assert cenote.output_shape(geometry) == (2, 4, 4)
    assert len(cenote.windows(geometry, None, (0, 0, 0))) == 4


@pytest.mark.parametrize(
    "padding, pads",
    [(1, ((1, 1), (1, 1))), ((0, 1), ((0, 0), (1, 1))), ([(0, 1), (1, 0)], ((0, 1), (1, 0))), ("valid", ((0, 0), (0, 0))),
     ([(0, 1)], ((0, 1), (0, 1))), ("same", ((0, 1), (1, 1))), ("same_lower", ((1, 0), (1, 1))), (np.array([1, 0]), ((1, 1), (0, 0)))],
)
def test_forms_of_padding(padding, pads, random):
    x = random.standard_normal((6, 7))
    padded = np.pad(x, pads, constant_values=-np.inf)
    expected = cenote.max_pool(padded, (2, 3), 1)
    np.testing.assert_array_equal(cenote.max_pool(x, (2, 3), 1, padding), expected)


def test_axes_choose_what_is_pooled(random):
    x = random.standard_normal((4, 6, 8))
    for axes in ((0, 1), (1, 0), (-3, -1), (0, 2), 1, (1,), np.array([2, 0])):
        named = tuple(np.atleast_1d(axes) % 3)
        moved = cenote.max_pool(np.moveaxis(x, named, range(3 - len(named), 3)), (2,) * len(named))
        np.testing.assert_array_equal(cenote.max_pool(x, 2, axes=axes), np.moveaxis(moved, range(3 - len(named), 3), named))


def test_numbers_of_numpy_are_numbers(random):
    x = random.standard_normal((4, 4))
    np.testing.assert_array_equal(cenote.max_pool(x, np.array([2, 2]), np.int64(2)), cenote.max_pool(x, (2, 2)))
    assert cenote.smooth_max_pool(x, (2, 2), beta=np.float32(2)).shape == (2, 2)


def test_taps_of_a_window():
    taps = cenote.windows(Sliding((2, 2), padding=1), (3, 3), (0, 1))
    assert [tap.position for tap in taps] == [(-1, 1), (-1, 2), (0, 1), (0, 2)]
    assert [tap.real for tap in taps] == [False, False, True, True]
    x = np.arange(35.0).reshape(5, 7)
    y = cenote.adaptive_max_pool(x, (3, 3))
    for index in np.ndindex(y.shape):
        assert y[index] == max(x[tap.position] for tap in cenote.windows(Adaptive((3, 3)), x.shape, index))


def test_empty_batches_give_empty_results():
    x = np.zeros((0, 3, 4, 4), np.float32)
    y, indices = cenote.max_pool(x, (2, 2), return_indices=True)
    assert y.shape == indices.shape == (0, 3, 2, 2)
    assert cenote.max_pool_vjp(x, y, (2, 2)).shape == x.shape


def test_sixteen_axes_work():
    assert cenote.max_pool(np.ones((2,) * 16, np.int8), (2,) * 16).shape == (1,) * 16
