"""The rest of cenote.jax beside values: derivatives as functions, linearize, PyTorch's names, and what forward mode runs."""

import cenote
import cenote.jax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax_cases import SHAPE, each_call, with_ties_and_nans

X = np.arange(2 * 3 * 5 * 6, dtype=np.float32).reshape(2, 3, 5, 6)
LINEAR = (cenote.Average(), cenote.Sum())


@each_call
def test_derivatives_as_functions_are_numpys_bit_for_bit(call, random):
    x = with_ties_and_nans(random)
    dx = random.normal(size=SHAPE).astype(np.float32)
    gy = random.normal(size=call.value(x).shape).astype(np.float32)
    push = lambda x, dx: getattr(cenote.jax, call.name + "_jvp")(x, dx, *call.arguments, **call.options)  # noqa: E731
    pull = lambda x, gy: getattr(cenote.jax, call.name + "_vjp")(x, gy, *call.arguments, **call.options)  # noqa: E731
    np.testing.assert_array_equal(jax.jit(push)(x, dx), call.jvp(x, dx))
    np.testing.assert_array_equal(jax.jit(pull)(x, gy), call.vjp(x, gy))
    np.testing.assert_array_equal(jax.vmap(push)(np.stack([x, x]), np.stack([dx, -dx]))[1], call.jvp(x, -dx))
    np.testing.assert_array_equal(jax.vmap(push, (None, 0))(x, np.stack([dx, -dx]))[1], call.jvp(x, -dx))
    np.testing.assert_array_equal(jax.vmap(pull, (None, 0))(x, np.stack([gy, -gy]))[1], call.vjp(x, -gy))
    # Each is linear in its last argument, with the other as its transpose.
    np.testing.assert_array_equal(jax.vjp(lambda dx: push(x, dx), dx)[1](gy)[0], call.vjp(x, gy))
    np.testing.assert_array_equal(jax.vjp(lambda gy: pull(x, gy), gy)[1](dx)[0], call.jvp(x, dx))


@pytest.mark.parametrize("name", ["avg_pool", "sum_pool"])
def test_a_shape_is_enough_for_derivatives_of_averages_and_sums(name, random):
    gy = random.normal(size=(2, 3)).astype(np.float32)
    dx = random.normal(size=(4, 6)).astype(np.float32)
    of = (4, 6), gy, (2, 2)
    np.testing.assert_array_equal(getattr(cenote.jax, name + "_vjp")(*of), getattr(cenote, name + "_vjp")(*of))
    of = [4, 6], dx, (2, 2)
    np.testing.assert_array_equal(getattr(cenote.jax, name + "_jvp")(*of), getattr(cenote, name + "_jvp")(*of))
    with pytest.raises(TypeError, match=r"max_pool_vjp: x is \(4, 6\); it must be a jax array or a numpy array"):
        cenote.jax.max_pool_vjp((4, 6), gy, (2, 2))


WRONG = [
    ("max_pool_jvp", (X, X[0]), ((2, 2),), {}),
    ("max_pool_jvp", (X, X.astype(np.float16)), ((2, 2),), {}),
    ("max_pool_vjp", (X, X), ((2, 2),), {}),
    ("max_pool_vjp", (X, X[..., :2, :3].astype(np.float16)), ((2, 2),), {}),
    ("max_pool_jvp", (X, X), ((2, 9),), {}),
    ("max_pool_jvp", (X.astype(np.int32), X.astype(np.int32)), ((2, 2),), {}),
    ("smooth_max_pool_vjp", (X, X), ((2, 2),), {"beta": 0}),
    ("global_avg_pool_vjp", ((2, 3), X), (), {"spatial_dims": 1}),
    ("max_pool2d", (X,), (2, 1, 2), {}),
    ("max_pool1d", (X,), (2,), {}),
    ("adaptive_avg_pool2d", (X,), (0,), {}),
    ("lp_pool2d", (X, 0.5, 2), (), {}),
]


@pytest.mark.parametrize("name, arrays, arguments, options", WRONG)
def test_wrong_arguments_are_refused_with_numpys_sentences(name, arrays, arguments, options):
    with pytest.raises((ValueError, TypeError)) as numpys:
        getattr(cenote, name)(*arrays, *arguments, **options)
    with pytest.raises(numpys.type) as mine:
        getattr(cenote.jax, name)(*arrays, *arguments, **options)
    assert str(mine.value) == str(numpys.value)


def test_derivatives_do_not_take_what_only_values_have():
    with pytest.raises(TypeError, match="return_indices"):
        cenote.jax.max_pool_jvp(X, X, (2, 2), return_indices=True)


OPERATORS = [cenote.Max(), cenote.Max("all"), cenote.Min("split"), *LINEAR, cenote.SmoothMax(2.0), cenote.Lp(3)]


@pytest.mark.parametrize("op", OPERATORS, ids=repr)
def test_a_linearization_is_numpys(op, random):
    x, dx = (random.normal(size=SHAPE).astype(np.float32) for _ in range(2))
    windows = cenote.Sliding((3, 3), 2, 1)
    theirs = cenote.linearize(op, windows, x)
    gy = random.normal(size=theirs.value.shape).astype(np.float32)
    mine = jax.jit(lambda x: cenote.jax.linearize(op, windows, x))(x)  # a program may return it ...
    assert repr(mine) == repr(theirs) and mine.bytes_kept == theirs.bytes_kept
    np.testing.assert_array_equal(mine.value, theirs.value)
    np.testing.assert_array_equal(mine.push(dx), theirs.push(dx))
    np.testing.assert_array_equal(jax.jit(lambda at, gy: at.pull(gy))(mine, gy), theirs.pull(gy))  # ... and take it
    np.testing.assert_array_equal(cenote.jax.jvp(op, windows, x, dx), theirs.push(dx))
    np.testing.assert_array_equal(cenote.jax.vjp(op, windows, x, gy), theirs.pull(gy))
    if isinstance(op, (cenote.Max, cenote.Min)):
        np.testing.assert_array_equal(mine.winners(), theirs.winners())
        np.testing.assert_array_equal(mine.indices(), theirs.indices())
    else:
        with pytest.raises(TypeError, match="winners: only Max and Min have winners"):
            mine.winners()
    for verb, wrong in [("push", dx[0]), ("push", dx.astype(np.float16)), ("pull", dx)]:
        with pytest.raises((ValueError, TypeError)) as numpys:
            getattr(theirs, verb)(wrong)
        with pytest.raises(numpys.type) as raised:
            getattr(mine, verb)(wrong)
        assert str(raised.value) == str(numpys.value)


OF_PYTORCH = [
    ("max_pool1d", (3, 2, 1), {"dilation": 1, "ceil_mode": True}),
    ("max_pool2d", ((3, 2), (2, 1), 1), {}),
    ("max_pool3d", (2, 1), {}),
    ("avg_pool1d", (3, 2, 1), {"count_include_pad": False}),
    ("avg_pool2d", (2,), {"divisor_override": 3}),
    ("avg_pool3d", (2, 1), {}),
    ("lp_pool1d", (2.0, 3, 2), {}),
    ("lp_pool2d", (3.0, 2), {}),
    ("lp_pool3d", (1.0, 2), {}),
    ("adaptive_max_pool1d", (2,), {}),
    ("adaptive_max_pool2d", ((2, None),), {}),
    ("adaptive_max_pool3d", (2,), {}),
    ("adaptive_avg_pool1d", (4,), {}),
    ("adaptive_avg_pool2d", ((None, 3),), {}),
    ("adaptive_avg_pool3d", (2,), {}),
]


@pytest.mark.parametrize("name, arguments, options", OF_PYTORCH)
def test_pytorchs_names_give_pytorchs_numbers(name, arguments, options, random):
    torch = pytest.importorskip("torch")
    rank = int(name[-2])
    x = random.normal(size=(2, 3, 4, 5, 6)[: 2 + rank]).astype(np.float32)
    tensor = torch.tensor(x, requires_grad=True)
    theirs = getattr(torch.nn.functional, name)(tensor.abs() if name.startswith("lp") else tensor, *arguments, **options)
    call = lambda x: getattr(cenote.jax, name)(x, *arguments, **options)  # noqa: E731
    y, pull = jax.vjp(jax.jit(call), x)
    np.testing.assert_allclose(y, theirs.detach(), rtol=2e-6, atol=1e-6)
    np.testing.assert_array_equal(y, getattr(cenote, name)(x, *arguments, **options))
    gy = random.normal(size=y.shape).astype(np.float32)
    theirs.backward(torch.from_numpy(gy))
    np.testing.assert_allclose(pull(gy)[0], tensor.grad, rtol=2e-5, atol=2e-6)
    if "max" in name:
        _, indices = getattr(torch.nn.functional, name)(tensor, *arguments, **options, return_indices=True)
        np.testing.assert_array_equal(getattr(cenote.jax, name)(x, *arguments, **options, return_indices=True)[1], indices)


def calls_of(function, *arguments):
    """The names of the primitives of a program, in loops too."""

    def names(jaxpr):
        for equation in jaxpr.eqns:
            yield equation.primitive.name
            for each in jax.tree_util.tree_leaves(equation.params, is_leaf=lambda each: hasattr(each, "jaxpr")):
                if hasattr(each, "jaxpr"):
                    yield from names(each.jaxpr)

    return {name for name in names(jax.make_jaxpr(function)(*arguments).jaxpr) if name.startswith("cenote_")}


POOLS = {
    "max": lambda x: cenote.jax.max_pool(x, (2, 2)),
    "smooth": lambda x: cenote.jax.smooth_max_pool(x, (2, 2), beta=1.0),
    "average": lambda x: cenote.jax.avg_pool(x, (2, 2)),
}


def test_forward_mode_reads_the_input_once():
    both = {"cenote_forward_and_push"}
    assert calls_of(lambda x: jax.jvp(POOLS["max"], (x,), (x,)), X) == both
    assert calls_of(lambda x: jax.jvp(POOLS["smooth"], (x,), (x,)), X) == both
    assert calls_of(lambda x: jax.jvp(POOLS["average"], (x,), (x,)), X) == {"cenote_forward", "cenote_push"}


def test_backward_mode_keeps_winners():
    assert calls_of(jax.grad(lambda x: POOLS["max"](x).sum()), X) == {"cenote_select", "cenote_pull"}
    assert calls_of(jax.grad(lambda x: jax.jit(POOLS["max"])(x).sum()), X) == {"cenote_select", "cenote_pull"}


@pytest.mark.parametrize("name", POOLS)
def test_loops_and_checkpoints_do_not_change_derivatives(name, random):
    x = jnp.asarray(random.normal(size=(3, 4, 6)), jnp.float32)
    pool = POOLS[name]
    step = lambda carry, row: (carry + pool(row), pool(row).sum())  # noqa: E731
    loop = lambda x: (jax.lax.scan(step, jnp.zeros((2, 3)), x)[0] ** 2).sum()  # noqa: E731
    plain = lambda x: (pool(x).sum(0) ** 2).sum()  # noqa: E731
    policies = jax.checkpoint_policies
    variants = [loop, jax.checkpoint(loop), jax.checkpoint(plain), jax.checkpoint(plain, policy=policies.everything_saveable)]
    expected, push = jax.jit(jax.grad(plain))(x), jax.jvp(jax.grad(plain), (x,), (x,))[1]
    for each in variants:
        np.testing.assert_allclose(jax.jit(jax.grad(each))(x), expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(jax.jvp(jax.grad(each), (x,), (x,))[1], push, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(jax.jvp(each, (x,), (x,))[1], (expected * x).sum(), rtol=1e-4)
    # A tangent inside what is differentiated backwards.
    inner = lambda x: jax.jvp(pool, (x,), (jnp.ones_like(x),))[1].sum()  # noqa: E731
    for each in (inner, jax.checkpoint(inner), lambda x: jax.lax.map(inner, x).sum()):
        direct = jax.grad(lambda x: jax.vjp(pool, x)[1](jnp.ones((3, 2, 3)))[0].sum())(x)
        np.testing.assert_allclose(jax.jit(jax.grad(each))(x), direct, rtol=1e-5, atol=1e-5)
