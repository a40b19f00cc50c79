"""Arrays in and out: element types, strides, other libraries' arrays, results that go where the caller says."""

import array

import ml_dtypes
import numpy as np
import pytest

import cenote

FLOATS = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def naive_max(x, k):
    """The maximum of k x k blocks, by numpy."""
    h, w = x.shape[-2] // k, x.shape[-1] // k
    return x[..., : h * k, : w * k].reshape(*x.shape[:-2], h, k, w, k).max(axis=(-3, -1))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_every_element_type_keeps_its_type(dtype, random):
    x = random.integers(0, 100, (3, 6, 8)).astype(dtype)
    y, indices = cenote.max_pool(x, (2, 2), return_indices=True)
    assert y.dtype == x.dtype and indices.dtype == np.int64
    np.testing.assert_array_equal(y.astype(float), naive_max(x.astype(float), 2))
    np.testing.assert_array_equal(np.take_along_axis(x.reshape(3, -1), indices.reshape(3, -1), 1), y.reshape(3, -1))
    assert cenote.avg_pool(x, (2, 2)).dtype == x.dtype
    assert cenote.sum_pool(x, (2, 2)).dtype == x.dtype
    if dtype in FLOATS:
        gy = np.ones(y.shape, dtype)
        assert cenote.smooth_max_pool(x, (2, 2), beta=1.0).dtype == x.dtype
        assert cenote.max_pool_jvp(x, x, (2, 2)).dtype == x.dtype
        assert cenote.lp_pool_vjp(x, gy, (2, 2), p=2).dtype == x.dtype


def test_c_types_of_one_size_are_one_type():
    for code in "lqLQ":
        assert cenote.max_pool(np.arange(4, dtype=code), (2,)).tolist() == [1, 3]


def test_integer_averages_round_half_to_even():
    assert cenote.avg_pool(np.array([1, 2, 2, 3, -1, -2], np.int8), (2,)).tolist() == [2, 2, -2]


VIEWS = {
    "reversed": lambda x: x[:, ::-1, ::-1],
    "every second": lambda x: x[:, ::2, ::2],
    "every third, backwards": lambda x: x[::-1, ::-3, 1:],
    "transposed": lambda x: x.transpose(0, 2, 1),
    "channels last": lambda x: np.ascontiguousarray(x.transpose(1, 2, 0)).transpose(2, 0, 1),
    "Fortran": np.asfortranarray,
    "repeated": lambda x: np.broadcast_to(x[:1], x.shape),
    "one cell repeated": lambda x: np.broadcast_to(x[0, 0, 0], x.shape),
    "not from the start": lambda x: x[1:, 3:, 5:],
    "a new axis": lambda x: x[:, None],
}


@pytest.mark.parametrize("name", VIEWS)
def test_results_do_not_depend_on_strides(name, random):
    base = random.standard_normal((4, 12, 13)).astype(np.float32)
    x = VIEWS[name](base)
    dense = np.array(x, order="C")
    gy = random.standard_normal(cenote.max_pool(dense, (3, 2), 2, 1).shape).astype(np.float32)
    for options in ({}, {"axes": (0, 1)}):
        for call in (
            lambda a: cenote.max_pool(a, (3, 2), 2, 1, **options),
            lambda a: cenote.avg_pool(a, (3, 2), 2, 1, **options),
            lambda a: cenote.smooth_max_pool(a, (3, 2), 2, 1, beta=2.0, **options),
            lambda a: cenote.max_pool_jvp(a, a, (3, 2), 2, 1, **options),
        ):
            assert call(x).tobytes() == call(dense).tobytes()
    for g in (gy, np.asfortranarray(gy), np.repeat(gy, 2, -1)[..., ::2]):
        assert cenote.max_pool_vjp(x, g, (3, 2), 2, 1).tobytes() == cenote.max_pool_vjp(dense, gy, (3, 2), 2, 1).tobytes()


def test_inputs_are_never_written_and_may_be_read_only(random):
    x = random.standard_normal((2, 6, 6))
    x.flags.writeable = False
    before = x.tobytes()
    y = cenote.max_pool(x, (2, 2))
    y.flags.writeable = False
    cenote.max_pool_vjp(x, y, (2, 2))
    cenote.linearize(cenote.Max(), cenote.Sliding((2, 2)), x).pull(y)
    assert x.tobytes() == before and cenote.max_pool(x, (2, 2)).flags.writeable


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int8", "int32", "int64", "uint8"])
def test_arrays_of_torch_are_read_in_place(dtype, random):
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(random.integers(0, 100, (2, 3, 8, 8))).to(getattr(torch, dtype))
    for each in (x, x.contiguous(memory_format=torch.channels_last), x[:, :, ::2, 1:], x.expand(2, 3, 8, 8)):
        y = cenote.max_pool(each, (2, 2))
        assert isinstance(y, np.ndarray) and y.dtype.name == dtype
        np.testing.assert_array_equal(y.astype(float), torch.nn.functional.max_pool2d(each.double(), 2).numpy())


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "uint8"])
def test_arrays_of_jax_are_read_in_place(dtype, random):
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(random.integers(0, 100, (3, 8, 8)), dtype=dtype)
    y = cenote.max_pool(x, (2, 2))
    assert y.dtype.name == dtype
    np.testing.assert_array_equal(y.astype(float), naive_max(np.asarray(x).astype(float), 2))


def test_memory_of_other_libraries_is_released(random):
    torch = pytest.importorskip("torch")

    class Counted(torch.Tensor):
        alive = 0

        def __new__(cls, *args):
            cls.alive += 1
            return super().__new__(cls, *args)

        def __del__(self):
            Counted.alive -= 1

    for _ in range(10):
        cenote.max_pool(Counted(random.standard_normal((4, 4))), (2, 2))
    assert Counted.alive == 0


def test_buffers_are_read_in_place():
    assert cenote.max_pool(array.array("d", [1, 5, 2, 0]), (2,)).tolist() == [5, 2]
    assert cenote.max_pool(memoryview(b"\x01\x05\x02\x00"), (2,)).tolist() == [5, 2]


def test_a_large_result_is_the_callers_alone():
    x = np.zeros((1 << 18,), np.float32)
    y = cenote.max_pool(x, (2,))
    assert y.flags.owndata and not np.shares_memory(x, y)


def test_large_results_are_handed_out_under_pythons_lock():
    # A build with assertions aborts where an object is touched while the lock is released.
    x = np.arange(1 << 14, dtype=np.float32).reshape(128, 128)
    windows, gy = cenote.Sliding((2, 2)), np.ones((64, 64), np.float32)
    cenote.max_pool(x, (2, 2), return_indices=True)
    cenote.jvp(cenote.Max(), windows, x, x), cenote.vjp(cenote.Max(), windows, x, gy)
    for op in (cenote.Max(), cenote.Average()):
        at = cenote.linearize(op, windows, x)
        at.push(x), at.pull(gy)
    cenote.linearize(cenote.Max(), windows, x).indices()
    cenote.linearize(cenote.Max(), windows, x).winners()


class TestOut:
    """`out=`: where a result goes."""

    def test_it_is_filled_and_returned(self, random):
        x = random.standard_normal((3, 8, 8)).astype(np.float32)
        out = np.full((3, 4, 4), np.nan, np.float32)
        assert cenote.max_pool(x, (2, 2), out=out) is out
        np.testing.assert_array_equal(out, naive_max(x, 2))
        y, _ = cenote.max_pool(x, (2, 2), return_indices=True, out=out)
        assert y is out
        gx = np.full_like(x, np.nan)
        assert cenote.max_pool_vjp(x, out, (2, 2), out=gx) is gx and not np.isnan(gx).any()
        at = cenote.linearize(cenote.Max(), cenote.Sliding((2, 2)), x)
        assert at.pull(out, out=gx) is gx
        assert at.push(x, out=out) is out

    def test_it_may_have_any_strides(self, random):
        x = random.standard_normal((3, 8, 8)).astype(np.float32)
        for out in (np.empty((4, 4, 3), np.float32).transpose(2, 0, 1), np.empty((3, 4, 8), np.float32)[..., ::-2]):
            assert cenote.max_pool(x, (2, 2), out=out) is out
            np.testing.assert_array_equal(out, naive_max(x, 2))

    def test_a_torch_tensor_is_filled(self, random):
        torch = pytest.importorskip("torch")
        x = random.standard_normal((3, 8, 8)).astype(np.float32)
        out = torch.empty(3, 4, 4)
        assert cenote.max_pool(x, (2, 2), out=out) is out
        np.testing.assert_array_equal(out.numpy(), naive_max(x, 2))

    def test_an_array_of_jax_is_left_alone(self):
        jax = pytest.importorskip("jax")
        out = jax.numpy.zeros((3, 4, 4), "float32")
        with pytest.raises(ValueError, match="max_pool: out is read-only"):
            cenote.max_pool(np.ones((3, 8, 8), np.float32), (2, 2), out=out)
        assert not out.any()

    @pytest.mark.parametrize(
        ("out", "kind", "words"),
        [
            (lambda x: np.zeros((3, 4, 5), np.float32), ValueError, "out has size 5 on axis 2; expected 4"),
            (lambda x: np.zeros((4, 4), np.float32), ValueError, "out has 2 axes; expected 3"),
            (lambda x: np.zeros((3, 4, 4)), TypeError, "out has dtype float64, but x has float32"),
            (lambda x: x[:, :4, :4], ValueError, "out shares memory with an input"),
            (lambda x: np.broadcast_to(np.float32(0), (3, 4, 4)), ValueError, "out is read-only"),
            (lambda x: np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (3, 4, 4), (0, 0, 0)), ValueError,
             "out has two elements at one address"),
            (lambda x: [0], TypeError, "out is of type list"),
            (lambda x: np.zeros((3, 4, 4), ">f4"), TypeError, "out has dtype >f4"),
        ],
    )
    def test_what_does_not_fit_is_refused_and_left_alone(self, out, kind, words):
        x = np.zeros((3, 8, 8), np.float32)
        with pytest.raises(kind, match="max_pool: " + words):
            cenote.max_pool(x, (2, 2), out=out(x))
