"""Derivatives of cenote.jax, of every order and in every direction."""

import cenote
import cenote.jax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from jax_cases import SHAPE, each_call, with_ties_and_nans

CURVED = [
    lambda x: cenote.jax.smooth_max_pool(x, (3, 2), 1, 1, beta=1.5),
    lambda x: cenote.jax.smooth_max_pool(x, (3, 2), 2, 1, beta=-0.7, padding_mode="ignore"),
    lambda x: cenote.jax.lp_pool(x, (2, 3), 1, 1, p=2),
    lambda x: cenote.jax.lp_pool(x, (2, 3), 2, p=3.5),
    lambda x: cenote.jax.global_smooth_max_pool(x, axes=(0,), keepdims=False, beta=2),
]


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


@each_call
def test_first_derivatives_are_numpys_bit_for_bit(call, random):
    x = with_ties_and_nans(random)
    dx = random.normal(size=SHAPE).astype(np.float32)
    gy = random.normal(size=call.value(x).shape).astype(np.float32)
    both = jax.jit(lambda x, dx, gy: (jax.jvp(call.jax, (x,), (dx,)), jax.vjp(call.jax, x)[1](gy)))
    (y, dy), (gx,) = both(x, dx, gy)
    np.testing.assert_array_equal(y, call.value(x))
    np.testing.assert_array_equal(dy, call.jvp(x, dx))
    np.testing.assert_array_equal(gx, call.vjp(x, gy))


@each_call
def test_derivatives_are_those_of_differences(call, random, x64):
    check_grads(jax.jit(call.jax), (random.normal(size=SHAPE),), order=1, modes=("fwd", "rev"))


@pytest.mark.parametrize("function", CURVED)
def test_second_derivatives_are_those_of_differences(function, random, x64):
    check_grads(jax.jit(function), (random.normal(size=(4, 5)),), order=2, modes=("fwd", "rev"))


def test_third_derivatives_are_those_of_differences(random, x64):
    check_grads(jax.jit(lambda x: cenote.jax.smooth_max_pool(x, (2,), beta=1.0)), (random.normal(size=4),), order=3, modes=("rev",))


@pytest.mark.parametrize("function", CURVED)
def test_hessians_agree_in_all_four_orders(function, random, x64):
    x = random.normal(size=(4, 3))
    loss = lambda x: (function(x) ** 2).sum()  # noqa: E731
    orders = [(a, b) for a in (jax.jacfwd, jax.jacrev) for b in (jax.jacfwd, jax.jacrev)]
    hessians = [np.asarray(jax.jit(outer(inner(loss)))(x)).reshape(12, 12) for outer, inner in orders]
    for hessian in hessians:
        np.testing.assert_allclose(hessian, hessians[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name, options", [("max_pool", {}), ("max_pool", {"ties": "all"}), ("avg_pool", {})])
def test_straight_operators_have_no_second_derivative(name, options, random, x64):
    x = random.normal(size=(4, 4))
    pool = lambda x: getattr(cenote.jax, name)(x, (2, 2), **options).sum()  # noqa: E731
    for outer in (jax.jacfwd, jax.jacrev):
        for inner in (jax.jacfwd, jax.jacrev):
            np.testing.assert_array_equal(jax.jit(outer(inner(pool)))(x), np.zeros((4, 4, 4, 4)))


@each_call
def test_jacobians_are_made_of_numpys_columns(call, random, x64):
    x = random.normal(size=SHAPE)
    cells = [(0, 0, 0, 0), (1, 2, 4, 5), (0, 1, 2, 3)]
    columns = []
    for cell in cells:
        dx = np.zeros(SHAPE)
        dx[cell] = 1
        columns.append(call.jvp(x, dx))
    point, push = jax.linearize(call.jax, x)
    np.testing.assert_array_equal(point, call.value(x))
    basis = np.zeros((len(cells), *SHAPE))
    for i, cell in enumerate(cells):
        basis[(i, *cell)] = 1
    np.testing.assert_array_equal(jax.vmap(push)(basis), np.stack(columns))
    # Backwards with a batch of gradients at one point, and at a batch of points.
    gy = random.normal(size=(2, *point.shape))
    expected = np.stack([call.vjp(x, each) for each in gy])
    np.testing.assert_array_equal(jax.vmap(jax.vjp(call.jax, x)[1])(gy)[0], expected)
    xs = np.stack([x, -x])
    expected = np.stack([call.vjp(each, gy[0]) for each in xs])
    np.testing.assert_array_equal(jax.vmap(lambda x: jax.vjp(call.jax, x)[1](gy[0])[0])(xs), expected)


def test_jacfwd_and_jacrev_agree_on_a_max(random):
    x = random.normal(size=(4, 6)).astype(np.float32)
    pool = lambda x: cenote.jax.max_pool(x, (3, 3), 1, 1)  # noqa: E731
    np.testing.assert_array_equal(jax.jacfwd(pool)(x), jax.jacrev(pool)(x))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_has_derivatives(dtype, random):
    x = jnp.asarray(random.normal(size=SHAPE)).astype(dtype)
    for op in (cenote.Max(), cenote.Average(), cenote.SmoothMax(2.0), cenote.Lp(2)):
        windows = cenote.Sliding((3, 3), 2, 1)
        y, pull = jax.vjp(lambda x: cenote.jax.forward(op, windows, x), x)
        gx = pull(jnp.ones_like(y))[0]
        assert gx.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(gx), cenote.vjp(op, windows, np.asarray(x), np.ones(y.shape, x.dtype)))
        hvp = jax.eval_shape(lambda x: jax.jvp(jax.grad(lambda x: cenote.jax.forward(op, windows, x).sum()), (x,), (x,))[1], x)
        assert hvp.dtype == x.dtype


def test_a_norm_has_its_second_derivative_also_where_a_cell_is_zero(x64):
    x = np.array([3.0, 0.0, 4.0])
    norm = lambda x: cenote.jax.global_lp_pool(x, spatial_dims=1, keepdims=False, p=2)  # noqa: E731
    np.testing.assert_allclose(jax.jit(jax.hessian(norm))(x), np.eye(3) / 5 - np.outer(x, x) / 125, atol=1e-15)


def test_a_norm_of_zeros_has_zero_derivatives(x64):
    for p in (1, 1.5, 2, 3):
        norm = lambda x: cenote.jax.lp_pool(x, (2,), p=p).sum()  # noqa: E731, B023
        np.testing.assert_array_equal(jax.grad(norm)(np.zeros(4)), np.zeros(4))
        np.testing.assert_array_equal(jax.jit(jax.hessian(norm))(np.zeros(4)), np.zeros((4, 4)))


def test_infinite_gradients_reach_the_winner_and_nothing_else():
    x = np.array([1.0, 3.0, 2.0, 0.0], np.float32)
    pull = jax.vjp(lambda x: cenote.jax.max_pool(x, (2,)), x)[1]
    np.testing.assert_array_equal(pull(np.array([np.inf, np.nan], np.float32))[0], [0, np.inf, np.nan, 0])


def test_integers_have_no_gradient():
    x = np.arange(4)
    with pytest.raises(TypeError, match="grad requires real- or complex-valued inputs"):
        jax.grad(lambda x: cenote.jax.max_pool(x, (2,)).sum())(x)
    y, dy = jax.jvp(lambda x: cenote.jax.max_pool(x, (2,)), (x,), (np.zeros(4, jax.dtypes.float0),))
    assert dy.dtype == jax.dtypes.float0 and y.tolist() == [1, 3]


def test_derivatives_pass_through_control_flow_and_checkpoints(random, x64):
    x = random.normal(size=(3, 16))

    def loop(x):
        return jax.lax.scan(lambda carry, row: (carry + cenote.jax.smooth_max_pool(row, (4,), beta=1.0), 0), jnp.zeros(4), x)[0]

    def plain(x):
        return cenote.jax.smooth_max_pool(x, (4,), beta=1.0).sum(0)

    for outer in (jax.jacfwd, jax.jacrev, jax.hessian):
        np.testing.assert_allclose(jax.jit(outer(loop))(x), jax.jit(outer(plain))(x), rtol=1e-12)
    np.testing.assert_array_equal(jax.jit(jax.jacrev(jax.checkpoint(plain)))(x), jax.jit(jax.jacrev(plain))(x))
