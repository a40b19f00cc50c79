"""The names and arguments that are promised to users, written down once, against what the three modules have."""

import inspect

import cenote
import pytest

SLIDING = "x, kernel, stride=None, padding=0, dilation=1, *, "
PROMISED = {
    "max_pool": SLIDING + "ceil_mode=False, axes=None, ties='first', return_indices=False, out=None",
    "min_pool": SLIDING + "ceil_mode=False, axes=None, ties='first', return_indices=False, out=None",
    "avg_pool": SLIDING + "ceil_mode=False, count_include_pad=True, divisor_override=None, axes=None, out=None",
    "sum_pool": SLIDING + "ceil_mode=False, axes=None, out=None",
    "smooth_max_pool": SLIDING + "beta, ceil_mode=False, padding_mode='zeros', axes=None, out=None",
    "lp_pool": SLIDING + "p, ceil_mode=False, axes=None, out=None",
    "adaptive_max_pool": "x, output_size, *, axes=None, return_indices=False",
    "adaptive_avg_pool": "x, output_size, *, axes=None",
    "adaptive_smooth_max_pool": "x, output_size, *, beta, axes=None",
    "global_max_pool": "x, *, spatial_dims=None, axes=None, keepdims=True, ties='all'",
    "global_avg_pool": "x, *, spatial_dims=None, axes=None, keepdims=True",
    "global_smooth_max_pool": "x, *, beta, spatial_dims=None, axes=None, keepdims=True",
}
DERIVATIVES = {
    f"{name}_{verb}": arguments.replace("x, ", f"x, {second}, ", 1).replace(", return_indices=False", "")
    for name, arguments in PROMISED.items()
    for verb, second in (("jvp", "dx"), ("vjp", "gy"))
}
VERBS = {
    "forward": "op, geometry, x",
    "jvp": "op, geometry, x, dx",
    "vjp": "op, geometry, x, gy",
    "linearize": "op, geometry, x",
}
MAX = "input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False"
AVERAGE = "input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True"
OF_PYTORCH = {
    **{f"max_pool{n}d": MAX for n in (1, 2, 3)},
    **{f"avg_pool{n}d": AVERAGE + (", divisor_override=None" if n > 1 else "") for n in (1, 2, 3)},
    **{f"lp_pool{n}d": "input, norm_type, kernel_size, stride=None, ceil_mode=False" for n in (1, 2, 3)},
    **{f"adaptive_max_pool{n}d": "input, output_size, return_indices=False" for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": "input, output_size" for n in (1, 2, 3)},
}
ONLY_TORCH = {f"smooth_max_pool{n}d": "input, kernel_size" for n in (1, 2, 3)} | {"replace": "model"}
CLASSES = {
    "Sliding": "kernel, stride, padding, dilation, ceil_mode, axes",
    "Adaptive": "output_size, axes",
    "Max": "ties",
    "Average": "count_include_pad, divisor_override",
    "SmoothMax": "beta, padding_mode",
    "Min": "ties",
    "Sum": "",
    "Lp": "p",
}
OTHERS = ["Geometry", "output_shape", "windows", "set_num_threads", "get_num_threads", "target", "targets", "limit_target", "__version__"]


def parameters(text):
    return list(inspect.signature(eval(f"lambda {text}: None")).parameters.values())


def described(arguments):
    """In their order where that matters."""
    by_place = [(a.name, a.kind, a.default) for a in arguments if a.kind is not a.KEYWORD_ONLY]
    return by_place, {a.name: a.default for a in arguments if a.kind is a.KEYWORD_ONLY}


def promised_by(module):
    if module == "cenote.torch":  # whose derivatives are torch's
        return {**PROMISED, **OF_PYTORCH, **ONLY_TORCH}
    return {**PROMISED, **DERIVATIVES, **VERBS, **OF_PYTORCH}


@pytest.mark.parametrize("module", ["cenote", "cenote.torch", "cenote.jax"])
def test_every_promised_function_is_there_with_its_arguments(module):
    found = pytest.importorskip(module)
    for name, text in promised_by(module).items():
        assert name in found.__all__, name
        theirs = list(inspect.signature(getattr(found, name)).parameters.values())
        expected = parameters(text)
        if module != "cenote":  # results are made by torch and jax
            expected = [each for each in expected if each.name != "out"]
        kept = [each for each in theirs if each.name in {e.name for e in expected}]
        assert described(kept) == described(expected), name
        # What is there besides may be left out, and does not come between arguments that are given by place.
        for extra in [each for each in theirs if each not in kept]:
            assert extra.default is not extra.empty or name in ONLY_TORCH, f"{name}: {extra}"
            assert extra.kind is extra.KEYWORD_ONLY or name in ONLY_TORCH, f"{name}: {extra}"


def test_every_promised_class_is_there_with_its_arguments():
    for name, text in CLASSES.items():
        stub = getattr(cenote, name).__init__.__doc__ or getattr(cenote, name).__doc__
        for argument in filter(None, text.split(", ")):
            assert argument in stub, f"{name}: {argument}"
    for name in OTHERS:
        assert name in cenote.__all__


def test_a_linearization_has_its_parts_in_both_libraries():
    jax = pytest.importorskip("cenote.jax")
    for each in (cenote.LinearMap, jax.LinearMap):
        for part in ("push", "pull", "winners", "indices", "bytes_kept"):
            assert hasattr(each, part)
    assert "value" in dir(cenote.LinearMap) and "value" in jax.LinearMap.__annotations__


def test_the_modules_of_pytorch_are_there():
    torch = pytest.importorskip("cenote.torch")
    for rank in (1, 2, 3):
        for name in ("MaxPool", "AvgPool", "AdaptiveMaxPool", "AdaptiveAvgPool", "LPPool", "SmoothMaxPool"):
            assert f"{name}{rank}d" in torch.__all__
