"""Derivatives of every operator on every kind of window: pairs are adjoint, agree with differences, and with linearize."""

import numpy as np
import pytest

import cenote

WINDOWS = {
    "sliding": cenote.Sliding((2, 3), stride=(1, 2), padding=1),
    "ceil": cenote.Sliding((3, 3), stride=2, ceil_mode=True),
    "dilated, other axes": cenote.Sliding(2, dilation=2, axes=(0, 2)),
    "asymmetric": cenote.Sliding((2, 2), padding=[(0, 1), (2, 0)]),
    "same": cenote.Sliding((3, 2), stride=2, padding="same"),
    "adaptive": cenote.Adaptive((3, 4)),
    "global": cenote.Global(2),
    "global, dropped": cenote.Global(axes=(0, 2), keepdims=False),
}
OPERATORS = [
    cenote.Max(), cenote.Max("all"), cenote.Max("split"), cenote.Min(), cenote.Average(), cenote.Average(False),
    cenote.Average(divisor_override=-3), cenote.Sum(), cenote.SmoothMax(2.0), cenote.SmoothMax(-1.0, "ignore"), cenote.Lp(3),
]


@pytest.mark.parametrize("windows", WINDOWS.values(), ids=list(WINDOWS))
@pytest.mark.parametrize("op", OPERATORS, ids=repr)
def test_derivatives(op, windows, random):
    x = random.standard_normal((3, 7, 6))
    dx = random.standard_normal(x.shape)
    y = cenote.forward(op, windows, x)
    assert y.shape == cenote.output_shape(windows, x.shape)
    gy = random.standard_normal(y.shape)
    dy, gx = cenote.jvp(op, windows, x, dx), cenote.vjp(op, windows, x, gy)
    np.testing.assert_allclose((dy * gy).sum(), (dx * gx).sum(), rtol=1e-12, atol=1e-12)
    step = 1e-6
    difference = (cenote.forward(op, windows, x + step * dx) - cenote.forward(op, windows, x - step * dx)) / (2 * step)
    np.testing.assert_allclose(dy, difference, rtol=1e-4, atol=1e-6)
    at = cenote.linearize(op, windows, x)
    assert at.value.tobytes() == y.tobytes()
    for _ in range(2):
        np.testing.assert_array_equal(at.push(dx), dy)
        np.testing.assert_allclose(at.pull(gy), gx, rtol=1e-14, atol=1e-14)


def arguments_of(kind, operator):
    arguments = {"": ((2, 2),), "adaptive_": ((3, 3),), "global_": ()}[kind]
    options = {"spatial_dims": 2} if kind == "global_" else {}
    if operator == "smooth_max":
        options["beta"] = 1.5
    if operator == "lp":
        options["p"] = 2
    return arguments, options


def operator_of(kind, operator):
    return {
        "max": cenote.Max("all" if kind == "global_" else "first"), "min": cenote.Min("all" if kind == "global_" else "first"),
        "avg": cenote.Average(), "sum": cenote.Sum(), "smooth_max": cenote.SmoothMax(1.5), "lp": cenote.Lp(2),
    }[operator]


@pytest.mark.parametrize("kind", ["", "adaptive_", "global_"])
@pytest.mark.parametrize("operator", ["max", "min", "avg", "sum", "smooth_max", "lp"])
def test_names_mean_their_operators(kind, operator, random):
    x = random.standard_normal((2, 6, 6)).round(1).astype(np.float32)  # with ties
    name = f"{kind}{operator}_pool"
    arguments, options = arguments_of(kind, operator)
    windows = {"": cenote.Sliding((2, 2)), "adaptive_": cenote.Adaptive((3, 3)), "global_": cenote.Global(2)}[kind]
    op = operator_of(kind, operator)
    y = getattr(cenote, name)(x, *arguments, **options)
    assert y.tobytes() == cenote.forward(op, windows, x).tobytes()
    dx, gy = random.standard_normal(x.shape).astype(x.dtype), random.standard_normal(y.shape).astype(x.dtype)
    assert getattr(cenote, f"{name}_jvp")(x, dx, *arguments, **options).tobytes() == cenote.jvp(op, windows, x, dx).tobytes()
    gx = getattr(cenote, f"{name}_vjp")(x, gy, *arguments, **options)
    assert gx.tobytes() == cenote.vjp(op, windows, x, gy).tobytes()
    if operator in ("avg", "sum"):
        for shape in (x.shape, list(x.shape)):
            assert getattr(cenote, f"{name}_vjp")(shape, gy, *arguments, **options).tobytes() == gx.tobytes()
            assert cenote.vjp(op, windows, shape, gy).tobytes() == gx.tobytes()
    if kind == "global_":
        flat = getattr(cenote, name)(x, axes=(1, 2), keepdims=False, **{k: v for k, v in options.items() if k != "spatial_dims"})
        assert flat.shape == (2,) and flat.tobytes() == y.tobytes()


def test_tied_cells_share_as_they_are_told():
    x, gy = np.zeros((1, 4)), np.full((1, 1), 8.0)
    assert cenote.max_pool_vjp(x, gy, (4,)).tolist() == [[8, 0, 0, 0]]
    assert cenote.max_pool_vjp(x, gy, (4,), ties="all").tolist() == [[8, 8, 8, 8]]
    assert cenote.max_pool_vjp(x, gy, (4,), ties="split").tolist() == [[2, 2, 2, 2]]
    assert cenote.global_max_pool_vjp(x, gy, spatial_dims=1).tolist() == [[8, 8, 8, 8]]


def test_a_map_keeps_one_byte_an_output_for_a_maximum_and_nothing_for_an_average(random):
    x = random.standard_normal((8, 64, 64)).astype(np.float32)
    windows = cenote.Sliding((2, 2))
    assert cenote.linearize(cenote.Max(), windows, x).bytes_kept == 8 * 32 * 32
    assert cenote.linearize(cenote.Average(), windows, x).bytes_kept == 0
    assert cenote.linearize(cenote.SmoothMax(1.0), windows, x).bytes_kept == x.nbytes


def test_a_map_does_not_look_at_x_again(random):
    for op in OPERATORS:
        x = random.standard_normal((6, 6))
        windows = cenote.Sliding((2, 2))
        gx = cenote.vjp(op, windows, x, np.ones((3, 3)))
        at = cenote.linearize(op, windows, x)
        x[:] = 0
        np.testing.assert_array_equal(at.pull(np.ones((3, 3))), gx)


def test_winners_are_offsets_in_the_window():
    x = np.array([[0.0, 1, 9, 2], [3, 0, 0, 0]])
    at = cenote.linearize(cenote.Max(), cenote.Sliding((2, 2)), x)
    assert at.winners().dtype == np.uint8 and at.winners().tolist() == [[2, 0]]
    assert at.indices().tolist() == [[4, 2]]
    wide = cenote.linearize(cenote.Max(), cenote.Sliding((300,)), np.arange(300.0))
    assert wide.winners().dtype == np.uint16 and wide.winners().tolist() == [299]


def test_a_window_without_a_cell_has_no_winner():
    windows = cenote.Sliding((1,), stride=1, padding=1)
    at = cenote.linearize(cenote.Max(), windows, np.array([5.0]))
    assert at.value.tolist() == [0, 5, 0]
    assert at.indices().tolist() == [-1, 0, -1] and at.winners().tolist() == [255, 0, 255]
    assert cenote.max_pool(np.array([5.0]), (1,), padding=1, return_indices=True)[1].tolist() == [-1, 0, -1]


def test_winners_in_the_callers_bytes_serve_derivatives(random):
    # What frameworks use that keep the bytes between forward and backward.
    from cenote import _core

    x = random.standard_normal((2, 9, 9)).astype(np.float32)
    for op, windows in ((cenote.Max(), cenote.Sliding((3, 3), 2, 1)), (cenote.Min(), cenote.Global(2))):
        at = cenote.linearize(op, windows, x)
        y = np.empty_like(at.value)
        winners = np.empty(y.size * _core.winner_bytes(windows, x.shape), np.uint8)
        _core.forward_with_winners(op, windows, x, y, winners)
        np.testing.assert_array_equal(y, at.value)
        gy = random.standard_normal(y.shape).astype(np.float32)
        np.testing.assert_array_equal(_core.push_winners(windows, x.shape, winners, x), at.push(x))
        np.testing.assert_array_equal(_core.pull_winners(windows, x.shape, winners, gy), at.pull(gy))
        np.testing.assert_array_equal(_core.flat_indices(windows, x.shape, winners), at.indices())
        with pytest.raises(ValueError, match="pull_winners: winners has"):
            _core.pull_winners(windows, x.shape, winners[1:], gy)
