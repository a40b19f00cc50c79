"""Pooling as primitives of jax: six of them, each a foreign function of XLA, and their rules.

    forward(x) -> y                       select(x) -> y, winners          indices(winners) -> flat indices
    push(point, dx) -> dy                 pull(point, gy) -> gx            forward_and_push(x, dx) -> y, dy

`push` is the derivative at a point and `pull` its transpose; each is the other's transpose for jax. The point is what the
derivative needs to know of x: nothing for averages and sums, the winners (a byte an output) where one cell wins, x itself
for the rest. Second derivatives are written in terms of `push` and `pull`, so that all orders follow.

`forward_and_push` reads x once for both: it is what forward mode runs. Where jax wants the value now and the derivative
later (backward mode, loops that it takes apart), rules split it into a value and a `push`.
"""

# jax does not type what extends it.
# mypy: allow-untyped-calls

from __future__ import annotations

import functools
import pathlib
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir, partial_eval

from .. import _core
from .._core import Adaptive, Average, Global, Lp, Max, Min, Operator, Sliding, SmoothMax, Sum


def _register_handlers() -> None:
    # Older jaxlibs take handlers of their own version only; which it is, their header says.
    header = pathlib.Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h")
    (version,) = re.findall(r"define XLA_FFI_API_MINOR (\d+)", header.read_text())
    for name, handler in _core.xla_handlers(int(version)).items():
        jax.ffi.register_ffi_target(name, handler, platform="cpu")


_register_handlers()


# ---- what the operators are to jax -------------------------------------------------------------------------------


def is_linear(op: Operator) -> bool:
    return isinstance(op, (Average, Sum))


def keeps_winners(op: Operator) -> bool:
    return isinstance(op, (Max, Min)) and op.ties == "first"


def forward_with_point(x: Any, op: Operator, windows: Any) -> tuple[Any, tuple[Any, ...]]:
    """y, and what push and pull need to know of x."""
    if keeps_winners(op):
        y, winners = select_p.bind(x, op=op, windows=windows)
        return y, (winners,)
    return forward_p.bind(x, op=op, windows=windows), () if is_linear(op) else (x,)


def point_of(x: Any, op: Operator, windows: Any) -> tuple[Any, ...]:
    """What push and pull need to know of x."""
    if keeps_winners(op):
        return (select_p.bind(x, op=op, windows=windows)[1],)
    return () if is_linear(op) else (x,)


def _curvature_of_push(x: Any, dx: Any, u: Any, op: Operator, windows: Any, shape: tuple[int, ...]) -> Any:
    """The derivative of push(x, dx) by x, applied to u; None where it is zero."""
    push = functools.partial(push_p.bind, x, op=op, windows=windows, shape=shape)
    if isinstance(op, SmoothMax):
        return op.beta * (push(u * dx) - push(u) * push(dx))
    if isinstance(op, Lp) and op.p != 1:
        y = forward_p.bind(x, op=op, windows=windows)
        if op.p == 2:
            straight = _over(push_p.bind(u * dx, op=Sum(), windows=windows, shape=shape), y)
        else:
            straight = push(_over(u * dx, x))
        return (op.p - 1) * (straight - _over(push(u) * push(dx), y))
    return None


def _curvature_of_pull(x: Any, gy: Any, u: Any, op: Operator, windows: Any, shape: tuple[int, ...]) -> Any:
    """The derivative of pull(x, gy) by x, applied to u; None where it is zero."""
    push = functools.partial(push_p.bind, x, op=op, windows=windows, shape=shape)
    pull = functools.partial(pull_p.bind, x, op=op, windows=windows, shape=shape)
    if isinstance(op, SmoothMax):
        return op.beta * (u * pull(gy) - pull(gy * push(u)))
    if isinstance(op, Lp) and op.p != 1:
        y = forward_p.bind(x, op=op, windows=windows)
        if op.p == 2:
            straight = u * pull_p.bind(_over(gy, y), op=Sum(), windows=windows, shape=shape)
        else:
            straight = _over(u, x) * pull(gy)
        return (op.p - 1) * (straight - pull(_over(gy * push(u), y)))
    return None


def _over(a: Any, b: Any) -> Any:
    """a / b, and 0 where b is 0: there the norm has no second derivative, and its first is 0."""
    zero = b == 0
    return jnp.where(zero, 0, a / jnp.where(zero, 1, b))


# ---- shapes ------------------------------------------------------------------------------------------------------


def known(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """A shape with some number for unknown sizes, which axes of exported programs may have if they are not pooled."""
    return tuple(size if isinstance(size, int) else 1 << 20 for size in shape)


def output_shape(windows: Any, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    out = list(_core.output_shape(windows, known(shape)))
    for axis, size in enumerate(shape):
        if axis not in windows.axes:
            out[_output_axis(windows, axis)] = size
    return tuple(out)


def _forward_abstract(x: Any, *, op: Operator, windows: Any) -> ShapedArray:
    return ShapedArray(output_shape(windows, x.shape), x.dtype)


def _select_abstract(x: Any, *, op: Operator, windows: Any) -> tuple[ShapedArray, ShapedArray]:
    y = _forward_abstract(x, op=op, windows=windows)
    plane = tuple(size if axis in windows.axes else 1 for axis, size in enumerate(x.shape))  # winners of one are like all
    return y, ShapedArray(y.shape, np.dtype(f"uint{8 * _core.winner_bytes(windows, plane)}"))


def _forward_and_push_abstract(x: Any, dx: Any, *, op: Operator, windows: Any) -> tuple[ShapedArray, ShapedArray]:
    y = _forward_abstract(x, op=op, windows=windows)
    return y, y


def _push_abstract(*args: Any, op: Operator, windows: Any, shape: tuple[int, ...]) -> ShapedArray:
    return ShapedArray(output_shape(windows, shape), args[-1].dtype)


def _pull_abstract(*args: Any, op: Operator, windows: Any, shape: tuple[int, ...]) -> ShapedArray:
    return ShapedArray(shape, args[-1].dtype)


def _indices_abstract(winners: Any, *, op: Operator, windows: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> ShapedArray:
    return ShapedArray(winners.shape, dtype)


# ---- derivatives -------------------------------------------------------------------------------------------------


def _zero_like(value: Any) -> ad.Zero:
    return ad.Zero(jax.typeof(value).to_tangent_aval())


def _sum_or_zero(terms: list[Any], like: Any) -> Any:
    return functools.reduce(jnp.add, terms) if terms else _zero_like(like)


def _forward_jvp(primitive: Primitive, primals: Any, tangents: Any, *, op: Operator, windows: Any) -> Any:
    (x,), (dx,) = primals, tangents
    if type(dx) is ad.Zero:
        y = primitive.bind(x, op=op, windows=windows)
        return y, _zero_like(y)
    if is_linear(op):
        return primitive.bind(x, op=op, windows=windows), push_p.bind(dx, op=op, windows=windows, shape=x.shape)
    return forward_and_push_p.bind(x, dx, op=op, windows=windows)


def _forward_and_push_jvp(primitive: Primitive, primals: Any, tangents: Any, *, op: Operator, windows: Any) -> Any:
    (x, dx), (tx, tdx) = primals, tangents
    y, point = forward_with_point(x, op, windows)
    push = functools.partial(push_p.bind, *point, op=op, windows=windows, shape=x.shape)
    dy = push(dx)
    ty = _zero_like(y) if type(tx) is ad.Zero else push(tx)
    terms = [] if type(tdx) is ad.Zero else [push(tdx)]
    if type(tx) is not ad.Zero:
        curved = _curvature_of_push(x, dx, tx, op, windows, x.shape)
        if curved is not None:
            terms.append(curved.astype(dy.dtype))
    return (y, dy), (ty, _sum_or_zero(terms, dy))


def _select_jvp(primitive: Primitive, primals: Any, tangents: Any, *, op: Operator, windows: Any) -> Any:
    (x,), (dx,) = primals, tangents
    y, winners = primitive.bind(x, op=op, windows=windows)
    if type(dx) is ad.Zero:
        dy = _zero_like(y)
    else:
        dy = push_p.bind(winners if keeps_winners(op) else x, dx, op=op, windows=windows, shape=x.shape)
    return (y, winners), (dy, _zero_like(winners))


def _indices_jvp(primitive: Primitive, primals: Any, tangents: Any, **params: Any) -> Any:
    indices = primitive.bind(*primals, **params)
    return indices, _zero_like(indices)


def _linear_jvp(primitive: Primitive, primals: Any, tangents: Any, **params: Any) -> Any:
    """Of push and pull: linear in the last argument, curved in the point."""
    *point, last = primals
    *point_tangent, last_tangent = tangents
    out = primitive.bind(*primals, **params)
    terms = []
    if type(last_tangent) is not ad.Zero:
        terms.append(primitive.bind(*point, last_tangent, **params))
    if point and type(point_tangent[0]) is not ad.Zero and not keeps_winners(params["op"]):
        curvature = _curvature_of_push if primitive is push_p else _curvature_of_pull
        curved = curvature(point[0], last, point_tangent[0], **params)
        if curved is not None:
            terms.append(curved.astype(out.dtype))
    return out, _sum_or_zero(terms, out)


def _linear_transpose(transposed: Primitive, cotangent: Any, *args: Any, **params: Any) -> Any:
    *point, last = args
    if type(cotangent) is ad.Zero:
        return [None] * len(point) + [ad.Zero(last.aval)]
    return [None] * len(point) + [transposed.bind(*point, cotangent, **params)]


# ---- value now, tangent later ------------------------------------------------------------------------------------


def _split_while_evaluating(trace: Any, x: Any, dx: Any, *, op: Operator, windows: Any) -> Any:
    if not x.pval.is_known() or dx.pval.is_known():
        return trace.default_process_primitive(forward_and_push_p, (x, dx), {"op": op, "windows": windows})
    y, point = forward_with_point(x.pval.get_known(), op, windows)
    params = {"op": op, "windows": windows, "shape": x.aval.shape}
    return [y, trace.default_process_primitive(push_p, (*point, dx), params)]


def _split_equation(saveable: Any, unknown: Any, there: Any, equation: Any) -> Any:
    """Of a program that is divided: what is computed before, after, which results are unknown before, are there after,
    and what is handed over. Without a tangent, only the value can be computed; what is after it begins from x again."""
    missing = [variable for variable, is_there in zip(equation.invars, there) if not is_there]
    if unknown[0]:
        return None, equation, [True, True], [True, True], missing
    if unknown[1]:
        value = equation.replace(invars=equation.invars[:1], outvars=equation.outvars[:1], primitive=forward_p)
        return value, equation, [False, True], [True, True], missing
    if saveable(equation.primitive, *(variable.aval for variable in equation.invars), **equation.params) is True:
        return equation, None, [False, False], [False, False], []
    return equation, equation, [False, False], [True, True], missing


# ---- vmap: one more axis that is not pooled ----------------------------------------------------------------------


def _with_axis(windows: Any, axis: int) -> Any:
    """The same windows on arrays with one more axis, at `axis`."""
    given = windows  # whose arguments have no types
    axes = tuple(a + (a >= axis) for a in given.axes)
    if isinstance(windows, Sliding):
        return Sliding(given.kernel, given.stride, given.padding, given.dilation, given.ceil_mode, axes)
    return Global(None, axes, given.keepdims) if isinstance(windows, Global) else Adaptive(given.output_size, axes)


def _output_axis(windows: Any, axis: int) -> int:
    """Where an axis of the input that is not pooled is in the output."""
    dropped = isinstance(windows, Global) and not windows.keepdims
    return axis - sum(a < axis for a in windows.axes) if dropped else axis


def _input_axis(windows: Any, axis: int, rank: int) -> int:
    """Where a new axis may be put into inputs of `rank` axes to come out at `axis`."""
    return next(a for a in range(rank + 1) if _output_axis(_with_axis(windows, a), a) == axis)


def _forward_batch(primitive: Primitive, args: Any, axes: Any, *, op: Operator, windows: Any) -> Any:
    (x,), (axis,) = args, axes
    windows = _with_axis(windows, axis)
    out = primitive.bind(x, op=op, windows=windows)
    at = _output_axis(windows, axis)
    return (out, [at] * len(out)) if primitive.multiple_results else (out, at)


def _forward_and_push_batch(primitive: Primitive, args: Any, axes: Any, *, op: Operator, windows: Any) -> Any:
    (x, dx), (at, dx_at) = args, axes
    if at is None:  # many tangents at one point
        y, point = forward_with_point(x, op, windows)
        push_axes = (None,) * len(point) + (dx_at,)
        dy, out_at = _linear_batch(push_p, (*point, dx), push_axes, op=op, windows=windows, shape=x.shape)
        return (y, dy), (None, out_at)
    windows = _with_axis(windows, at)
    out = primitive.bind(x, _placed(dx, dx_at, at, x.shape[at]), op=op, windows=windows)
    return out, [_output_axis(windows, at)] * 2


def _placed(arg: Any, axis: int | None, to: int, size: Any) -> Any:
    """An argument with the new axis, of `size`, at `to`."""
    if axis is None:
        return jnp.broadcast_to(jnp.expand_dims(arg, to), (*arg.shape[:to], size, *arg.shape[to:]))
    return jnp.moveaxis(arg, axis, to) if axis != to else arg


def _indices_batch(primitive: Primitive, args: Any, axes: Any, *, windows: Any, shape: tuple[int, ...], **params: Any) -> Any:
    (winners,), (axis,) = args, axes
    at = _input_axis(windows, axis, len(shape))
    shape = (*shape[:at], winners.shape[axis], *shape[at:])
    return primitive.bind(winners, windows=_with_axis(windows, at), shape=shape, **params), axis


def _linear_batch(primitive: Primitive, args: Any, axes: Any, *, op: Operator, windows: Any, shape: tuple[int, ...]) -> Any:
    last_is_input = primitive is push_p
    are_inputs = [not keeps_winners(op)] * (len(args) - 1) + [last_is_input]  # the others have the output's shape
    # The first argument that has the new axis says where it is; the others follow.
    size, at = next(
        (arg.shape[axis], axis if is_input else _input_axis(windows, axis, len(shape)))
        for arg, axis, is_input in zip(args, axes, are_inputs)
        if axis is not None
    )
    windows = _with_axis(windows, at)
    out_at = _output_axis(windows, at)
    args = [_placed(arg, axis, at if is_input else out_at, size) for arg, axis, is_input in zip(args, axes, are_inputs)]
    shape = (*shape[:at], size, *shape[at:])
    return primitive.bind(*args, op=op, windows=windows, shape=shape), out_at if last_is_input else at


# ---- to XLA ------------------------------------------------------------------------------------------------------


def _attributes(op: Operator, windows: Any, shape: tuple[int, ...] = (), dtype: Any = None) -> dict[str, Any]:
    # As XLA's interface knows them: strings, 64-bit numbers, arrays of them.
    def typed(value: Any) -> Any:
        if isinstance(value, str):
            return value
        return np.float64(value) if isinstance(value, float) else np.array(value, np.int64)[()]

    out = {name: typed(value) for name, value in _core.xla_attributes(op, windows).items()}
    return {**out, "shape": np.array(known(shape), np.int64)} if dtype else out  # only indices have to be told


def _lower_cpu(target: str, ctx: Any, *args: Any, **params: Any) -> Any:
    return jax.ffi.ffi_lowering(target)(ctx, *args, **_attributes(**params))


def _lower_elsewhere(ctx: Any, *args: Any, **params: Any) -> Any:
    platforms = ", ".join(ctx.module_context.platforms)
    raise NotImplementedError(
        f"cenote.jax runs on CPUs, and this program is for {platforms}; put its arrays on jax.devices('cpu'), "
        "or choose the platform with jax.default_device"
    )


@functools.lru_cache(maxsize=4096)
def _compiled(primitive: Primitive, **params: Any) -> Any:
    return jax.jit(functools.partial(primitive.bind, **params))


def _primitive(name: str, abstract: Any, jvp: Any, batch: Any, multiple_results: bool = False) -> Primitive:
    primitive = Primitive(f"cenote_{name}")
    primitive.multiple_results = multiple_results
    primitive.def_impl(lambda *args, **params: _compiled(primitive, **params)(*args))
    primitive.def_abstract_eval(abstract)
    ad.primitive_jvps[primitive] = functools.partial(jvp, primitive)
    batching.primitive_batchers[primitive] = functools.partial(batch, primitive)
    mlir.register_lowering(primitive, _lower_elsewhere)
    mlir.register_lowering(primitive, functools.partial(_lower_cpu, primitive.name), platform="cpu")
    return primitive


forward_p = _primitive("forward", _forward_abstract, _forward_jvp, _forward_batch)
select_p = _primitive("select", _select_abstract, _select_jvp, _forward_batch, multiple_results=True)
forward_and_push_p = _primitive(
    "forward_and_push", _forward_and_push_abstract, _forward_and_push_jvp, _forward_and_push_batch, multiple_results=True
)
partial_eval.custom_partial_eval_rules[forward_and_push_p] = _split_while_evaluating
partial_eval.partial_eval_jaxpr_custom_rules[forward_and_push_p] = _split_equation
indices_p = _primitive("indices", _indices_abstract, _indices_jvp, _indices_batch)
push_p = _primitive("push", _push_abstract, _linear_jvp, _linear_batch)
pull_p = _primitive("pull", _pull_abstract, _linear_jvp, _linear_batch)
ad.primitive_transposes[push_p] = functools.partial(_linear_transpose, pull_p)
ad.primitive_transposes[pull_p] = functools.partial(_linear_transpose, push_p)
