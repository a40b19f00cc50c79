"""What the functions of the module call, with arguments as the caller wrote them: they are checked here, with the
library's sentences, and then bound to primitives."""

# jax does not type what extends it.
# mypy: allow-untyped-calls

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Union

import jax
import jax.numpy as jnp
import numpy as np

from .. import _core
from .._core import Operator
from ._primitives import (
    forward_and_push_p,
    forward_p,
    indices_p,
    is_linear,
    known,
    output_shape,
    point_of,
    pull_p,
    push_p,
    select_p,
)

if TYPE_CHECKING:
    from typing import Concatenate, ParamSpec

    Options = ParamSpec("Options")
    ArrayOrShape = Union[jax.Array, Sequence[int]]


class _Derivative(NamedTuple):
    """Stands where a function expects x, to have it compute a derivative instead."""

    compute: Callable[..., Any]
    verb: str
    x: Any
    other: Any


def pool(op: object, geometry: object, x: object, caller: str) -> jax.Array:
    """The value."""
    if isinstance(x, _Derivative):
        out: jax.Array = x.compute(op, geometry, x.x, x.other, f"{caller}_{x.verb}")
        return out
    x, op, windows = checked(op, geometry, x, caller)
    y: jax.Array = forward_p.bind(x, op=op, windows=windows)
    return y


def pool_with_indices(op: object, geometry: object, x: object, caller: str) -> tuple[jax.Array, jax.Array]:
    """The value, and the winners as flat indices."""
    x, op, windows = checked(op, geometry, x, caller)
    y, winners = select_p.bind(x, op=op, windows=windows)
    return y, flat_indices(winners, op, windows, x.shape, caller)


def selected(
    op: object, geometry: object, x: object, caller: str, return_indices: bool
) -> Union[jax.Array, tuple[jax.Array, jax.Array]]:
    """The value, or the value and the winners."""
    return pool_with_indices(op, geometry, x, caller) if return_indices else pool(op, geometry, x, caller)


def flat_indices(winners: Any, op: Operator, windows: Any, shape: tuple[Any, ...], caller: str) -> jax.Array:
    """Winners as PyTorch numbers them."""
    dtype = jax.dtypes.canonicalize_dtype(np.int64)
    plane = math.prod(shape[axis] for axis in windows.axes)
    if plane - 1 > np.iinfo(dtype).max:
        raise ValueError(f"{caller}: x has {plane} cells on its pooled axes, more than indices of {dtype} count; set jax_enable_x64")
    indices: jax.Array = indices_p.bind(winners, op=op, windows=windows, shape=shape, dtype=dtype)
    return indices


def jvp(op: object, geometry: object, x: object, dx: object, caller: str) -> jax.Array:
    """The derivative at x, applied to dx."""
    dx = as_array(dx, "dx", caller)
    x, shape, op, windows = _checked_point(op, geometry, x, dx, caller)
    check_like(dx, shape, getattr(x, "dtype", dx.dtype), "dx", caller)
    dy: jax.Array
    if is_linear(op):
        dy = push_p.bind(dx, op=op, windows=windows, shape=shape)
    else:
        _, dy = forward_and_push_p.bind(x, dx, op=op, windows=windows)
    return dy


def vjp(op: object, geometry: object, x: object, gy: object, caller: str) -> jax.Array:
    """The transposed derivative at x, applied to gy."""
    gy = as_array(gy, "gy", caller)
    x, shape, op, windows = _checked_point(op, geometry, x, gy, caller)
    check_like(gy, output_shape(windows, shape), getattr(x, "dtype", gy.dtype), "gy", caller)
    gx: jax.Array = pull_p.bind(*point_of(x, op, windows), gy, op=op, windows=windows, shape=shape)
    return gx


# ---- checks ------------------------------------------------------------------------------------------------------------


def as_array(x: Any, name: str, caller: str) -> jax.Array:
    if not isinstance(x, (jax.Array, np.ndarray, np.generic)) and not hasattr(x, "__jax_array__"):
        raise TypeError(f"{caller}: {name} is {x!r:.80}; it must be a jax array or a numpy array")
    return jnp.asarray(x)


def checked(op: Any, geometry: object, x: object, caller: str, derivative: bool = False) -> tuple[jax.Array, Operator, Any]:
    x = as_array(x, "x", caller)
    return (x, *_checked_call(op, geometry, x.shape, x.dtype, caller, derivative))


def check_like(other: jax.Array, shape: tuple[Any, ...], dtype: Any, name: str, caller: str, point: str = "x") -> None:
    """A tangent or a gradient has the type of x and the shape it must have."""
    _core.xla_check_like(known(other.shape), other.dtype, known(shape), dtype, name, caller, point)


def _checked_call(op: Any, geometry: object, shape: Any, dtype: Any, caller: str, derivative: bool) -> tuple[Operator, Any]:
    windows: Any
    op, windows = _core.xla_signature(op, geometry, known(shape), dtype, caller, derivative)
    for axis in windows.axes:
        if not isinstance(shape[axis], int):
            raise ValueError(f"{caller}: x has the unknown size {shape[axis]} on axis {axis}; a pooled axis needs a size")
    return op, windows


def _checked_point(op: object, geometry: object, x: Any, other: jax.Array, caller: str) -> tuple[Any, Any, Operator, Any]:
    """x or None, its shape, operator and windows. Of averages and sums the shape is enough."""
    if isinstance(x, (tuple, list)) and all(hasattr(size, "__index__") for size in x):
        checked_op, windows = _checked_call(op, geometry, tuple(x), other.dtype, caller, True)
        if is_linear(checked_op):
            return None, tuple(int(size) for size in x), checked_op, windows
    x, checked_op, windows = checked(op, geometry, x, caller, derivative=True)
    return x, x.shape, checked_op, windows


# ---- the functions' derivatives ------------------------------------------------------------------------------------------

_EXAMPLE = """
    >>> import jax, jax.numpy as jnp, cenote.jax
    >>> x, {other} = jnp.array([1.0, 5, 2, 0]), jnp.arange(1.0, {count})
    >>> {result} = cenote.jax.{name}_{verb}(x, {other}, {example})
    >>> bool(jnp.array_equal({result}, {same}))
    True
    """


def derivatives_of(
    function: Callable[Concatenate[jax.Array, Options], Any], example: str
) -> tuple[
    Callable[Concatenate[ArrayOrShape, jax.Array, Options], jax.Array],
    Callable[Concatenate[ArrayOrShape, jax.Array, Options], jax.Array],
]:
    """`<name>_jvp(x, dx, ...)` and `<name>_vjp(x, gy, ...)`, with the arguments of the function after x.

    `example` are arguments that make one output of x's four cells, or two, for the docstrings.
    """
    name = function.__name__

    def documented(verb: str, other: str, meaning: str, result: str, same: str) -> Any:
        compute = jvp if verb == "jvp" else vjp

        def derivative(*given: Any, **options: Any) -> Any:
            bound = signature.bind(*given, **options)
            x, second, *arguments = bound.args
            return function(_Derivative(compute, verb, x, second), *arguments, **bound.kwargs)  # type: ignore[arg-type]

        parameters = list(inspect.signature(function).parameters.values())
        second = parameters[0].replace(name=other)
        rest = [each for each in parameters[1:] if each.name != "return_indices"]
        signature = inspect.Signature([parameters[0], second, *rest], return_annotation="jax.Array")
        derivative.__name__ = derivative.__qualname__ = f"{name}_{verb}"
        derivative.__module__ = function.__module__
        derivative.__signature__ = signature  # type: ignore[attr-defined]
        count = 5 if verb == "jvp" else 2 if name.startswith("global") else 3
        shown = {"name": name, "verb": verb, "other": other, "result": result, "example": example, "count": count}
        text = _EXAMPLE.format(**shown, same=same.format(**shown))
        derivative.__doc__ = f"{meaning}: `cenote.{name}_{verb}` for jax.\n{text}"
        return derivative

    call = "lambda x: cenote.jax.{name}(x, {example})"
    return (
        documented(
            "jvp", "dx", f"The derivative of `{name}` at `x`, applied to `dx`", "dy", f"jax.jvp({call}, (x,), (dx,))[1]"
        ),
        documented("vjp", "gy", f"The gradient of `{name}` by `x`, from `gy`", "gx", f"jax.vjp({call}, x)[1](gy)[0]"),
    )
