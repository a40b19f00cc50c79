"""The verbs as functions that torch differentiates, of any order.

Each verb has a Function of autograd whose derivatives are the other verbs:

    pool                 x -> y       by x: vjp, jvp; of averages and sums: transpose, pool
    pool_with_winners    x -> y       by x: pull, push
    vjp                  x, gy -> gx  linear in gy, with the transpose jvp; by x: the second derivative below
    jvp                  x, dx -> dy  linear in dx, with the transpose vjp; by x: the second derivative below
    transpose, pull, push             linear

A call on ordinary tensors goes to the compiled part, which sees for itself whether they are; every other one (compiled,
transformed, traced, profiled, in forward mode) through the operators that `_operators` registers with torch, which come
back to these classes.
"""

# mypy: disable-error-code="attr-defined, call-arg, misc, no-any-return"
# torch does not type what is used of it here.

from __future__ import annotations

from typing import Any, Callable

import torch
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd import forward_ad

from .. import _core
from .._tags import LP, SMOOTH_MAX, SUM, TORCH_LP
from . import _kernels as kernels
from ._encoding import Call, Job, encode, is_linear, keeps_winners, output_shape

_C = torch._C
_is_compiling = torch.compiler.is_compiling
_is_ordinary = _core.torch_ordinary
_forward = _core.torch_forward


def is_plain(x: Any, other: Any = None) -> bool:
    """Whether x, and another one, are ordinary and have no tangents."""
    return forward_ad._current_level < 0 and _is_ordinary(x, other)


def _tracked(x: torch.Tensor, other: torch.Tensor | None = None) -> bool:
    return (x.requires_grad or (other is not None and other.requires_grad)) and torch.is_grad_enabled()


def _channels_last(x: torch.Tensor) -> bool:
    return kernels.memory_format(x) is not torch.contiguous_format


# ---- the verbs ---------------------------------------------------------------------------------------------------------


def pool(x: torch.Tensor, call: Call) -> torch.Tensor:
    """The value of `call` on x; the entry of every function of the package."""
    if _is_compiling():
        job = Job(*call)
        if keeps_winners(job) and _tracked(x):
            return torch.ops.cenote.pool_with_winners(x, *encode(job, x.shape))[0]
        return torch.ops.cenote.pool(x, *encode(job, x.shape))
    y = _forward(x, call) if forward_ad._current_level < 0 else _core.torch_tangent(x, call)
    if y is not None:
        return y
    job = Job(*call)
    validate(x, job)
    if keeps_winners(job):  # whether a derivative is asked for is not always to be seen here
        return torch.ops.cenote.pool_with_winners(x, *encode(job, x.shape))[0]
    return torch.ops.cenote.pool(x, *encode(job, x.shape))


def pool_with_indices(x: torch.Tensor, call: Call) -> tuple[torch.Tensor, torch.Tensor]:
    """The value, and the winners as PyTorch numbers them."""
    if not _is_compiling() and forward_ad._current_level < 0:
        both = _core.torch_indices(x, call)
        if both is not None:
            return both
        if _is_ordinary(x):
            return SelectWithIndices.apply(call, x)
    job = Job(*call)
    if not _is_compiling():
        validate(x, job)
    arguments = encode(job, x.shape)
    y, winners = torch.ops.cenote.pool_with_winners(x, *arguments)
    return y, torch.ops.cenote.indices(winners, x.shape, *arguments)


def validate(x: Any, job: Job) -> None:
    """The library's errors for what the caller wrote, before it is encoded."""
    kernels.check(x, "input", job.caller)
    if all(isinstance(n, int) for n in x.shape):
        output_shape(job, x.shape)


def vjp(x: torch.Tensor, gy: torch.Tensor, job: Job) -> torch.Tensor:
    if is_plain(x, gy):
        return Vjp.apply(kernels.vjp, job, x, gy) if _tracked(x, gy) else kernels.vjp(x, gy, job)
    return torch.ops.cenote.vjp(x, gy, *encode(job, x.shape))


def jvp(x: torch.Tensor, dx: torch.Tensor, job: Job) -> torch.Tensor:
    if is_plain(x, dx):
        return Jvp.apply(kernels.jvp, job, x, dx) if _tracked(x, dx) else kernels.jvp(x, dx, job)
    return torch.ops.cenote.jvp(x, dx, *encode(job, x.shape))


def transpose(gy: torch.Tensor, shape: Any, channels_last: bool, call: Call) -> torch.Tensor:
    job = Job(*call)
    if is_plain(gy):
        if _tracked(gy):
            return Transpose.apply(kernels.transpose, job, gy, shape, channels_last)
        return kernels.transpose(gy, shape, channels_last, job)
    return torch.ops.cenote.transpose(gy, shape, channels_last, *encode(job, shape))


def pull(gy: torch.Tensor, winners: torch.Tensor, shape: Any, channels_last: bool, call: Call) -> torch.Tensor:
    job = Job(*call)
    if is_plain(gy, winners):
        if _tracked(gy):
            return Pull.apply(kernels.pull, job, gy, winners, shape, channels_last)
        return kernels.pull(gy, winners, shape, channels_last, job)
    return torch.ops.cenote.pull(gy, winners, shape, channels_last, *encode(job, shape))


def push(dx: torch.Tensor, winners: torch.Tensor, job: Job) -> torch.Tensor:
    if is_plain(dx, winners):
        return Push.apply(kernels.push, job, dx, winners) if _tracked(dx) else kernels.push(dx, winners, job)
    return torch.ops.cenote.push(dx, winners, *encode(job, dx.shape))


# ---- second derivatives --------------------------------------------------------------------------------------------------
# With J the derivative at x and y the value, the second derivative of a smooth maximum is, per window,
# beta * (diag(w) - w w^T), and that of a p-norm (p - 1) / y * (diag(|x / y|^(p-2)) - w w^T). Maxima and averages have none.


def _curvature(x: torch.Tensor, job: Job) -> tuple[Any, Callable[..., Any], Callable[..., Any]] | None:
    """The factor c of c * (diag - w w^T), and the diagonal's two uses: gathered over windows, and scattered from them."""
    tag = job.op[0]
    if tag == SMOOTH_MAX:
        return job.op[1], lambda dx: jvp(x, dx, job), lambda gy: vjp(x, gy, job)
    if tag in (LP, TORCH_LP) and job.op[1] != 1:
        p = job.op[1]
        y = pool(x, job)
        flat = y == 0  # where the norm has no derivative, weights are 0
        safe = torch.where(flat, 1, y)
        power = torch.where(flat, 0, safe ** (2 - p))
        cells = x.abs() ** (p - 2)
        sums = job._replace(op=(SUM,))
        shape, channels_last = x.shape, _channels_last(x)
        return (
            torch.where(flat, 0, (p - 1) / safe),
            lambda dx: power * pool(cells * dx, sums),
            lambda gy: cells * transpose(power * gy, shape, channels_last, sums),
        )
    return None


def _bent_vjp(x: torch.Tensor, gy: torch.Tensor, dx: torch.Tensor, job: Job) -> torch.Tensor | None:
    """The derivative of vjp(x, gy) by x, along dx. It is symmetric: also its transpose."""
    found = _curvature(x, job)
    if found is None:
        return None
    factor, _, scatter = found
    return dx * scatter(factor * gy) - vjp(x, factor * gy * jvp(x, dx, job), job)


def _bent_jvp(x: torch.Tensor, dx: torch.Tensor, tx: torch.Tensor, job: Job) -> torch.Tensor | None:
    """The derivative of jvp(x, dx) by x, along tx."""
    found = _curvature(x, job)
    if found is None:
        return None
    factor, gather, _ = found
    return factor * (gather(dx * tx) - jvp(x, dx, job) * jvp(x, tx, job))


def _sum(shape: Any, like: torch.Tensor, *terms: torch.Tensor | None) -> torch.Tensor:
    present = [term for term in terms if term is not None]
    return sum(present[1:], present[0]) if present else like.new_zeros(shape)


# ---- the classes ---------------------------------------------------------------------------------------------------------
# `run` computes: a kernel, or the rest of torch's dispatch. They are of one level: where torch.func has several, its
# interpreters call the registered operators once for each, and autograd.Function would start them anew.

class _Function(torch.autograd.function._SingleLevelFunction):
    _compiled_autograd_key = torch.autograd.Function._compiled_autograd_key


def apply(function: Any, run: Callable[..., Any], job: Job, *arguments: Any) -> Any:
    """One of the classes below, for the level of torch.func that its dispatcher is at."""
    if _C._functorch.peek_interpreter_stack() is None:
        return function.apply(run, job, *arguments)
    with enable_single_level_autograd_function():
        return function.apply(run, job, *arguments)


def _forward_mode(rule: Callable[..., Any]) -> Any:
    """rule(ctx, saved tensors, tangents) as the `jvp` of a Function, differentiable in forward mode at outer levels."""

    def jvp(ctx: Any, run: Any, job: Any, *tangents: Any) -> Any:
        with forward_ad._set_fwd_grad_enabled(True):
            saved = [torch._VF._unpack_dual(t, level=0)[0] for t in ctx.saved_tensors]
            return rule(ctx, saved, *tangents)

    return staticmethod(jvp)


class Pool(_Function):
    @staticmethod
    def forward(ctx: Any, run: Any, job: Job, x: torch.Tensor) -> torch.Tensor:
        ctx.set_materialize_grads(False)
        ctx.job = job
        if is_linear(job):
            ctx.shape, ctx.channels_last = x.shape, _channels_last(x)
        else:
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
        return run(x, job)

    @staticmethod
    def backward(ctx: Any, gy: Any) -> Any:
        if gy is None:
            return None, None, None
        if is_linear(ctx.job):
            return None, None, transpose(gy, ctx.shape, ctx.channels_last, ctx.job)
        return None, None, vjp(*ctx.saved_tensors, gy, ctx.job)

    @_forward_mode
    def jvp(ctx: Any, saved: Any, dx: Any) -> Any:
        if dx is None:
            return None
        return pool(dx, ctx.job) if is_linear(ctx.job) else jvp(*saved, dx, ctx.job)


class PoolWithWinners(_Function):
    @staticmethod
    def forward(ctx: Any, run: Any, job: Job, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.set_materialize_grads(False)
        y, winners = run(x, job)
        ctx.mark_non_differentiable(winners)
        ctx.save_for_backward(winners)
        ctx.save_for_forward(winners)
        ctx.job, ctx.shape, ctx.channels_last = job, x.shape, _channels_last(x)
        return y, winners

    @staticmethod
    def backward(ctx: Any, gy: Any, _: Any) -> Any:
        if gy is None:
            return None, None, None
        return None, None, pull(gy, *ctx.saved_tensors, ctx.shape, ctx.channels_last, ctx.job)

    @_forward_mode
    def jvp(ctx: Any, saved: Any, dx: Any) -> Any:
        return None if dx is None else push(dx, *saved, ctx.job), None


# For ordinary tensors without tangents. These do as little as autograd lets them, because of small tensors.


def _pull_rest(gy: torch.Tensor, ctx: Any) -> torch.Tensor:
    return pull(gy, *ctx.saved_tensors, ctx.rest.shape, ctx.rest.channels_last, ctx.rest.call)


class SelectOnly(_Function):
    """pool_with_winners where the winners are nobody's but the gradient's."""

    @staticmethod
    def forward(ctx: Any, call: Call, x: torch.Tensor) -> torch.Tensor:
        y, winners, ctx.rest = _core.torch_select(x, call)
        ctx.save_for_backward(winners)
        return y

    @staticmethod
    def backward(ctx: Any, gy: Any) -> Any:
        return None, _pull_rest(gy, ctx)


class SelectWithIndices(_Function):
    """The same with indices that are the caller's."""

    @staticmethod
    def forward(ctx: Any, call: Call, x: torch.Tensor) -> Any:
        y, winners, ctx.rest = _core.torch_select(x, call)
        indices = kernels.indices(winners, ctx.rest.shape, Job(*call))
        ctx.mark_non_differentiable(indices)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(winners)
        return y, indices

    @staticmethod
    def backward(ctx: Any, gy: Any, _: Any) -> Any:
        return None, None if gy is None else _pull_rest(gy, ctx)


class LinearOnly(_Function):
    """pool of averages and sums."""

    @staticmethod
    def forward(ctx: Any, call: Call, x: torch.Tensor) -> torch.Tensor:
        y, ctx.rest = _core.torch_linear(x, call)
        return y

    @staticmethod
    def backward(ctx: Any, gy: Any) -> Any:
        return None, transpose(gy, ctx.rest.shape, ctx.rest.channels_last, ctx.rest.call)


class Vjp(_Function):
    @staticmethod
    def forward(ctx: Any, run: Any, job: Job, x: torch.Tensor, gy: torch.Tensor) -> torch.Tensor:
        ctx.set_materialize_grads(False)
        ctx.job = job
        ctx.save_for_backward(x, gy)
        ctx.save_for_forward(x, gy)
        return run(x, gy, job)

    @staticmethod
    def backward(ctx: Any, u: Any) -> Any:
        if u is None:
            return None, None, None, None
        x, gy = ctx.saved_tensors
        by_x = _bent_vjp(x, gy, u, ctx.job) if ctx.needs_input_grad[2] else None
        by_gy = jvp(x, u, ctx.job) if ctx.needs_input_grad[3] else None
        return None, None, by_x, by_gy

    @_forward_mode
    def jvp(ctx: Any, saved: Any, tx: Any, tgy: Any) -> Any:
        x, gy = saved
        by_x = None if tx is None else _bent_vjp(x, gy, tx, ctx.job)
        return _sum(x.shape, x, by_x, None if tgy is None else vjp(x, tgy, ctx.job))


class Jvp(_Function):
    @staticmethod
    def forward(ctx: Any, run: Any, job: Job, x: torch.Tensor, dx: torch.Tensor) -> torch.Tensor:
        ctx.set_materialize_grads(False)
        ctx.job = job
        ctx.save_for_backward(x, dx)
        ctx.save_for_forward(x, dx)
        return run(x, dx, job)

    @staticmethod
    def backward(ctx: Any, u: Any) -> Any:
        if u is None:
            return None, None, None, None
        x, dx = ctx.saved_tensors
        by_x = _bent_vjp(x, u, dx, ctx.job) if ctx.needs_input_grad[2] else None
        by_dx = vjp(x, u, ctx.job) if ctx.needs_input_grad[3] else None
        return None, None, by_x, by_dx

    @_forward_mode
    def jvp(ctx: Any, saved: Any, tx: Any, tdx: Any) -> Any:
        x, dx = saved
        by_x = None if tx is None else _bent_jvp(x, dx, tx, ctx.job)
        return _sum(output_shape(ctx.job, x.shape), x, by_x, None if tdx is None else jvp(x, tdx, ctx.job))


class Transpose(_Function):
    @staticmethod
    def forward(ctx: Any, run: Any, job: Job, gy: torch.Tensor, shape: Any, channels_last: bool) -> torch.Tensor:
        ctx.set_materialize_grads(False)
        ctx.job, ctx.shape, ctx.channels_last = job, shape, channels_last
        return run(gy, shape, channels_last, job)

    @staticmethod
    def backward(ctx: Any, u: Any) -> Any:
        return None, None, None if u is None else pool(u, ctx.job), None, None

    @_forward_mode
    def jvp(ctx: Any, saved: Any, tgy: Any, shape: Any, channels_last: Any) -> Any:
        return None if tgy is None else transpose(tgy, ctx.shape, ctx.channels_last, ctx.job)


class Pull(_Function):
    @staticmethod
    def forward(ctx: Any, run: Any, job: Job, gy: torch.Tensor, winners: Any, shape: Any, channels_last: bool) -> Any:
        ctx.set_materialize_grads(False)
        ctx.job, ctx.shape, ctx.channels_last = job, shape, channels_last
        ctx.save_for_backward(winners)
        ctx.save_for_forward(winners)
        return run(gy, winners, shape, channels_last, job)

    @staticmethod
    def backward(ctx: Any, u: Any) -> Any:
        by_gy = None if u is None else push(u, *ctx.saved_tensors, ctx.job)
        return None, None, by_gy, None, None, None

    @_forward_mode
    def jvp(ctx: Any, saved: Any, tgy: Any, winners: Any, shape: Any, channels_last: Any) -> Any:
        return None if tgy is None else pull(tgy, *saved, ctx.shape, ctx.channels_last, ctx.job)


class Push(_Function):
    @staticmethod
    def forward(ctx: Any, run: Any, job: Job, dx: torch.Tensor, winners: torch.Tensor) -> torch.Tensor:
        ctx.set_materialize_grads(False)
        ctx.job, ctx.shape, ctx.channels_last = job, dx.shape, _channels_last(dx)
        ctx.save_for_backward(winners)
        ctx.save_for_forward(winners)
        return run(dx, winners, job)

    @staticmethod
    def backward(ctx: Any, u: Any) -> Any:
        by_dx = None if u is None else pull(u, *ctx.saved_tensors, ctx.shape, ctx.channels_last, ctx.job)
        return None, None, by_dx, None

    @_forward_mode
    def jvp(ctx: Any, saved: Any, tdx: Any, winners: Any) -> Any:
        return None if tdx is None else push(tdx, *saved, ctx.job)


# ---- what the compiled part calls ----------------------------------------------------------------------------------------

_core.torch_start(
    tensor=torch.Tensor,
    parameter=torch.nn.Parameter,
    modes=(
        _C._functorch.peek_interpreter_stack,
        _C._len_torch_dispatch_stack,
        _C._get_tracing_state,
        _C._is_torch_function_mode_enabled,
        torch.autograd._profiler_enabled,
    ),
    is_grad_enabled=torch.is_grad_enabled,
    threads=torch.get_num_threads,
    is_last=_channels_last,
    new_last=kernels.new_last,
    new_bytes=kernels.new_bytes,
    new_indices=kernels.new_indices,
    select=SelectOnly.apply,
    linear=LinearOnly.apply,
    other=lambda call, x: Pool.apply(kernels.forward, Job(*call), x),
    forward_ad=forward_ad,
    is_forward_enabled=_C._is_fwd_grad_enabled,
    unpack_dual=torch._VF._unpack_dual,
    make_dual=torch._VF._make_dual,
)

# Ordinary gradients do not come to `backward` of these classes.
for _function in (SelectOnly, SelectWithIndices, LinearOnly):
    _core.torch_take_gradients(_function._backward_cls)
