"""What jax makes of cenote.jax: programs that call the library without Python, and errors while they are traced."""

import concurrent.futures
import doctest
import inspect
import os
import re
import subprocess
import sys

import cenote
import cenote.jax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cenote.jax import _primitives
from jax_cases import each_call

X = np.arange(2 * 3 * 5 * 6, dtype=np.float32).reshape(2, 3, 5, 6)


@each_call
def test_programs_call_the_library_and_not_python(call):
    step = jax.jit(lambda x: jax.value_and_grad(lambda x: call.jax(x).sum())(x))
    lowered = step.lower(X)
    targets = set(re.findall(r"custom_call @(\w+)", lowered.as_text()))
    assert targets and targets <= {"cenote_forward", "cenote_select", "cenote_pull"}
    assert "callback" not in lowered.as_text()


def test_compiled_programs_call_the_library():
    text = jax.jit(lambda x: cenote.jax.max_pool(x, (2, 2))).lower(X).compile().as_text()
    assert 'custom_call_target="cenote_forward"' in text and "callback" not in text


@pytest.mark.parametrize(
    "pool, kept",
    [
        (lambda x: cenote.jax.max_pool(x, (2, 2)), [np.uint8]),
        (lambda x: cenote.jax.max_pool(x, (5, 6), axes=(2, 3), padding=((0, 60), (0, 0))), [np.uint8]),
        (lambda x: cenote.jax.global_max_pool(x, axes=(1, 2, 3), ties="first"), [np.uint8]),
        (lambda x: cenote.jax.global_max_pool(jnp.tile(x, 4), spatial_dims=3, ties="first"), [np.uint16]),
        (lambda x: cenote.jax.avg_pool(x, (2, 2)), []),
        (lambda x: cenote.jax.smooth_max_pool(x, (2, 2), beta=1.0), [np.float32]),
    ],
)
def test_a_gradient_keeps_winners_for_a_max_and_nothing_for_an_average(pool, kept):
    jaxpr = jax.make_jaxpr(lambda x, gy: jax.vjp(pool, x)[1](gy))(X, pool(X))
    (pull,) = [each for each in jaxpr.eqns if each.primitive.name == "cenote_pull"]
    assert [variable.aval.dtype for variable in pull.invars[:-1]] == kept


def test_equal_windows_are_compiled_once():
    _primitives._compiled.cache_clear()
    for kernel, stride, padding in [((2, 2), None, 0), ([2, 2], 2, "valid"), (np.array([2, 2]), (2, 2), ((0, 0), (0, 0)))]:
        cenote.jax.max_pool(X, kernel, stride, padding)
    cenote.jax.max_pool(X, 2, axes=(2, 3))
    assert _primitives._compiled.cache_info().misses == 1


def test_programs_are_called_from_many_threads():
    step = jax.jit(jax.grad(lambda x: (cenote.jax.max_pool(x, (3, 3), 2, 1) ** 2).sum()))
    inputs = [np.roll(X, i) for i in range(16)]
    expected = [np.asarray(step(x)) for x in inputs]
    with concurrent.futures.ThreadPoolExecutor(8) as workers:
        for mine, alone in zip(workers.map(step, inputs * 8), expected * 8):
            np.testing.assert_array_equal(mine, alone)


def test_a_program_for_another_platform_says_so():
    step = jax.jit(lambda x: cenote.jax.max_pool(x, (2, 2)))
    with pytest.raises(NotImplementedError, match="cenote.jax runs on CPUs, and this program is for cuda"):
        jax.export.export(step, platforms=["cuda"])(X)


def test_a_program_can_be_exported_and_called_again():
    allowed = [jax.export.DisabledSafetyCheck.custom_call(name) for name in ("cenote_select", "cenote_pull")]
    step = jax.jit(jax.grad(lambda x: cenote.jax.max_pool(x, (3, 3), 2, 1).sum()))
    stored = jax.export.export(step, disabled_checks=allowed)(X).serialize()
    np.testing.assert_array_equal(jax.export.deserialize(stored).call(X), step(X))


def test_an_exported_program_may_leave_the_batch_open():
    (batch,) = jax.export.symbolic_shape("batch")
    names = ("cenote_forward", "cenote_select", "cenote_pull", "cenote_indices")
    allowed = [jax.export.DisabledSafetyCheck.custom_call(name) for name in names]

    def step(x):
        gradient = jax.grad(lambda x: (cenote.jax.max_pool(x, (3, 3), 2, 1) ** 2).sum())(x)
        return gradient, cenote.jax.global_smooth_max_pool(x, axes=(1, 3), keepdims=False, beta=1.0), *indices(x)

    def indices(x):
        return cenote.jax.adaptive_max_pool(x, 2, axes=(1,), return_indices=True)

    open_batch = jax.ShapeDtypeStruct((batch, 3, 5, 6), np.float32)
    program = jax.export.export(jax.jit(step), disabled_checks=allowed)(open_batch)
    for mine, closed in zip(program.call(X), step(X)):
        np.testing.assert_array_equal(mine, closed)
    with pytest.raises(ValueError, match="max_pool: x has the unknown size batch on axis 0; a pooled axis needs a size"):
        jax.export.export(jax.jit(lambda x: cenote.jax.max_pool(x, 2, axes=(0, 1))))(open_batch)


def test_batches_may_be_spread_over_devices():
    code = """
import jax, numpy as np, cenote, cenote.jax
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((2,), ("batch",))
x = np.random.default_rng(1).normal(size=(4, 3, 8, 8)).astype(np.float32)
step = jax.grad(lambda x: (cenote.jax.smooth_max_pool(x, (3, 3), 2, 1, beta=1.0) ** 2).sum())
spread = jax.device_put(x, NamedSharding(mesh, P("batch")))
assert np.array_equal(jax.jit(step)(spread), step(x))
pool = lambda x: cenote.jax.max_pool(x, (2, 2), return_indices=True)[0]
mapped = jax.shard_map(pool, mesh=mesh, in_specs=P("batch"), out_specs=P("batch"))
assert np.array_equal(mapped(spread), cenote.max_pool(x, (2, 2)))
"""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **flags})


WRONG = [
    ("max_pool", ((3, 9),), {}),
    ("max_pool", (3,), {}),
    ("max_pool", ((2, 2), 0), {}),
    ("max_pool", ((2, 2), 1, -1), {}),
    ("max_pool", ((2, 2), 1, "full"), {}),
    ("max_pool", ((2, 2),), {"ties": "last"}),
    ("max_pool", ((2.5, 2),), {}),
    ("max_pool", ((2, 2),), {"axes": (1, 1)}),
    ("max_pool", ((2, 2),), {"axes": (1, 7)}),
    ("max_pool", ((2, 2),), {"ceil_mode": "yes"}),
    ("avg_pool", ((2, 2),), {"divisor_override": 0}),
    ("smooth_max_pool", ((2, 2),), {"beta": 0}),
    ("smooth_max_pool", ((2, 2),), {"beta": float("nan")}),
    ("smooth_max_pool", ((2, 2),), {"beta": 1.0, "padding_mode": "reflect"}),
    ("lp_pool", ((2, 2),), {"p": 0.5}),
    ("adaptive_avg_pool", ((0, 2),), {}),
    ("global_avg_pool", (), {}),
    ("global_avg_pool", (), {"spatial_dims": 9}),
]


@pytest.mark.parametrize("name, arguments, options", WRONG)
def test_wrong_arguments_are_refused_with_numpys_sentences_while_tracing(name, arguments, options):
    with pytest.raises((ValueError, TypeError)) as numpys:
        getattr(cenote, name)(X, *arguments, **options)
    call = lambda x: getattr(cenote.jax, name)(x, *arguments, **options)  # noqa: E731
    for each in (call, jax.jit(call), jax.grad(lambda x: call(x).sum())):
        with pytest.raises(numpys.type) as mine:
            each(X)
        assert str(mine.value) == str(numpys.value)


@pytest.mark.parametrize("dtype", [np.complex64, np.bool_])
def test_wrong_element_types_are_refused_with_numpys_sentences(dtype):
    with pytest.raises(TypeError) as numpys:
        cenote.max_pool(X.astype(dtype), (2, 2))
    with pytest.raises(TypeError) as mine:
        cenote.jax.max_pool(X.astype(dtype), (2, 2))
    assert str(mine.value) == str(numpys.value)


def test_smooth_max_of_integers_is_refused():
    with pytest.raises(TypeError, match="smooth_max_pool: x has dtype int32; smooth_max is defined for float64"):
        cenote.jax.smooth_max_pool(X.astype(np.int32), (2, 2), beta=1.0)


def test_calls_written_by_hand_are_checked_when_they_run():
    def call(shape, **attributes):
        return jax.ffi.ffi_call("cenote_forward", jax.ShapeDtypeStruct(shape, np.float32))(X, **attributes)

    windows = cenote.Sliding((2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), False, (2, 3))
    attributes = _primitives._attributes(cenote.Max(), windows)
    np.testing.assert_array_equal(call((2, 3, 4, 5), **attributes), cenote.max_pool(X, (2, 2), 1))
    with pytest.raises(jax.errors.JaxRuntimeError, match="the attribute `operator` is missing or of another type"):
        call((2, 3, 4, 5))
    with pytest.raises(jax.errors.JaxRuntimeError, match="y has size 9 on axis 3; expected 5"):
        call((2, 3, 4, 9), **attributes)
    with pytest.raises(jax.errors.JaxRuntimeError, match="there is no operator `median`"):
        call((2, 3, 4, 5), **{**attributes, "operator": "median"})
    with pytest.raises(jax.errors.JaxRuntimeError, match="kernel is 0 on axis 2; it must be at least 1"):
        call((2, 3, 4, 5), **{**attributes, "kernel": np.array([0, 2])})


@pytest.mark.parametrize("x", [[1.0, 2.0], 3.0, None, "picture"])
def test_what_is_no_array_is_refused(x):
    with pytest.raises(TypeError, match="max_pool: x is .*; it must be a jax array or a numpy array"):
        cenote.jax.max_pool(x, (1,))


def test_indices_that_int32_cannot_count_are_refused():
    huge = jax.ShapeDtypeStruct((1 << 16, 1 << 16), np.uint8)
    with pytest.raises(ValueError, match="4294967296 cells on its pooled axes, more than indices of int32 count; set jax_enable_x64"):
        jax.eval_shape(lambda x: cenote.jax.max_pool(x, (2, 2), return_indices=True), huge)


def test_without_jax_the_module_says_what_it_needs():
    code = "import sys; sys.modules['jax'] = None\nimport cenote.jax"
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ModuleNotFoundError: cenote.jax needs jax: pip install jax" in failed.stderr


@pytest.mark.parametrize("name", ["", *cenote.jax.__all__])
def test_examples_of_docstrings_run(name):
    thing = getattr(cenote.jax, name) if name else cenote.jax
    (test,) = doctest.DocTestFinder(recurse=False).find(thing, name or "cenote.jax", module=False)
    results = doctest.DocTestRunner().run(test)
    assert results.failed == 0 and (results.attempted > 0 or inspect.isclass(thing))


@pytest.mark.parametrize("name", [name for name in cenote.jax.__all__ if name != "LinearMap"])
def test_arguments_are_those_of_numpys_functions_without_out(name):
    theirs = [each for each in inspect.signature(getattr(cenote, name)).parameters.values() if each.name != "out"]
    mine = list(inspect.signature(getattr(cenote.jax, name)).parameters.values())
    assert [(each.name, each.kind, each.default) for each in mine] == [(each.name, each.kind, each.default) for each in theirs]
