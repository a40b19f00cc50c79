"""cenote.jax gives the numbers of the numpy functions, whatever jax does to the call, and those of reduce_window."""

import cenote
import cenote.jax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax_cases import SHAPE, each_call, with_ties_and_nans


@each_call
def test_values_are_numpys_bit_for_bit(call, random):
    x = with_ties_and_nans(random)
    expected = call.value(x)
    eager = call.jax(x)
    assert isinstance(eager, jax.Array) and eager.dtype == expected.dtype
    np.testing.assert_array_equal(eager, expected)
    np.testing.assert_array_equal(jax.jit(call.jax)(x), expected)


@each_call
def test_vmap_over_any_axis_is_a_loop(call, random):
    x = random.normal(size=(4, *SHAPE)).astype(np.float32)
    expected = np.stack([call.value(each) for each in x])
    for axis in (0, 2, 4):
        np.testing.assert_array_equal(jax.vmap(call.jax, in_axes=axis)(np.moveaxis(x, 0, axis)), expected)


@each_call
def test_an_empty_batch_gives_an_empty_result(call):
    x = np.zeros((4, 0, *SHAPE), np.float32)
    shape = call.value(np.zeros(SHAPE, np.float32)).shape
    batched = jax.vmap(jax.vmap(call.jax))
    assert batched(x).shape == (4, 0, *shape)
    assert jax.grad(lambda x: batched(x).sum())(x).shape == x.shape


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "uint16", "int32", "uint64", "int64"])
def test_element_types(dtype, random):
    with jax.enable_x64(True):
        x = jnp.asarray(random.integers(0, 100, SHAPE)).astype(dtype)
        functions = ["max_pool", "min_pool", "avg_pool", "sum_pool"]
        if "float" in dtype:
            functions += ["smooth_max_pool", "lp_pool"]
        for name in functions:
            options = {"smooth_max_pool": {"beta": 0.25}, "lp_pool": {"p": 3}}.get(name, {})
            y = jax.jit(lambda x: getattr(cenote.jax, name)(x, (2, 3), 1, **options))(x)
            expected = getattr(cenote, name)(np.asarray(x), (2, 3), 1, **options)
            assert y.dtype == x.dtype
            np.testing.assert_array_equal(np.asarray(y), expected)


@pytest.mark.parametrize("ties", ["first", "all"])
def test_indices_are_numpys(ties, random):
    x = with_ties_and_nans(random)
    for name, arguments in [("max_pool", ((3, 3), 2, 1)), ("max_pool", ((2,), 3, 4)), ("adaptive_min_pool", ((2, 2),))]:
        options = {"return_indices": True, "ties": ties}
        expected = getattr(cenote, name)(x, *arguments, **options)
        call = jax.jit(lambda x: getattr(cenote.jax, name)(x, *arguments, **options))
        y, indices = call(x)
        assert indices.dtype == np.int32
        np.testing.assert_array_equal(y, expected[0])
        np.testing.assert_array_equal(indices, expected[1])
        mapped = jax.vmap(lambda x: getattr(cenote.jax, name)(x, *arguments, **options), in_axes=1, out_axes=1)(x)
        np.testing.assert_array_equal(mapped[1], expected[1])
        np.testing.assert_array_equal(jax.grad(lambda x: jnp.nansum(call(x)[0]))(x).shape, x.shape)
        with jax.enable_x64(True):
            assert call(x)[1].dtype == np.int64


def test_forward_takes_operators_and_windows_as_objects(random):
    x = random.normal(size=SHAPE).astype(np.float32)
    windows = cenote.Sliding((3, 3), stride=2, padding=1)
    for op in [cenote.Max(), cenote.Average(), cenote.SmoothMax(2.0), cenote.Lp(3)]:
        expected = cenote.forward(op, windows, x)
        np.testing.assert_array_equal(cenote.jax.forward(op, windows, x), expected)
        np.testing.assert_array_equal(cenote.jax.forward(op, cenote.resolve(windows, SHAPE), x), expected)


def flax_style(x, reduce, start, kernel, stride, padding):
    """Pooling of (N, C, H, W) as networks in jax write it."""
    full = [(0, 0), (0, 0), *padding]
    return lax.reduce_window(x, np.array(start, x.dtype)[()], reduce, (1, 1, *kernel), (1, 1, *stride), full)


@pytest.mark.parametrize(
    "kernel, stride, padding",
    [((2, 2), (2, 2), "valid"), ((3, 2), (1, 3), ((0, 2), (1, 0)))],
)
def test_agrees_with_reduce_window(kernel, stride, padding, random):
    x = jnp.asarray(random.normal(size=(2, 3, 7, 8)), jnp.float32)  # no ties: jax breaks them its own way
    pads = ((0, 0), (0, 0)) if padding == "valid" else padding
    dx = jnp.asarray(random.normal(size=x.shape), jnp.float32)

    pairs = {
        "max_pool": lambda x: flax_style(x, lax.max, -np.inf, kernel, stride, pads),
        "min_pool": lambda x: flax_style(x, lax.min, np.inf, kernel, stride, pads),
        "sum_pool": lambda x: flax_style(x, lax.add, 0, kernel, stride, pads),
        "avg_pool": lambda x: flax_style(x, lax.add, 0, kernel, stride, pads) / np.prod(kernel),
    }
    for name, theirs in pairs.items():

        def ours(x):
            return getattr(cenote.jax, name)(x, kernel, stride, padding)

        gy = jnp.asarray(random.normal(size=theirs(x).shape), jnp.float32)
        everything = jax.jit(lambda f, x: (*jax.jvp(f, (x,), (dx,)), jax.vjp(f, x)[1](gy)[0]), static_argnums=0)
        for mine, yours in zip(everything(ours, x), everything(theirs, x)):
            np.testing.assert_allclose(mine, yours, rtol=2e-6, atol=2e-6)


def test_results_do_not_depend_on_threads(random):
    x = jnp.asarray(random.normal(size=(8, 16, 64, 64)), jnp.float32)
    step = jax.jit(lambda x: jax.vjp(lambda x: cenote.jax.smooth_max_pool(x, (3, 3), 2, 1, beta=2.0), x)[1])
    run = jax.jit(lambda x, gy: jax.vjp(lambda x: cenote.jax.max_pool(x, (3, 3), 2, 1), x)[1](gy) + step(x)(gy))
    gy = jnp.asarray(random.normal(size=(8, 16, 32, 32)), jnp.float32)
    before = cenote.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 5):
            cenote.set_num_threads(threads)
            results.append([np.asarray(each) for each in run(x, gy)])
    finally:
        cenote.set_num_threads(before)
    for other in results[1:]:
        for mine, first in zip(other, results[0]):
            np.testing.assert_array_equal(mine, first)
