"""The operators `torch.ops.cenote.*`: the verbs registered with torch, with shapes, derivatives and batching rules.

Each has its tensors first, then what else the verb needs, then the ARGUMENTS that say which operator and windows.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any, Callable

import torch
from torch.autograd import forward_ad

from . import _derivatives as derivatives
from . import _kernels as kernels
from ._encoding import ARGUMENTS, Job, batched, decode, encode, output_shape, winners_shape

_below_autograd = torch._C._AutoDispatchBelowAutograd
_library = torch.library.Library("cenote", "DEF")
_COUNT = ARGUMENTS.count(",") + 1  # of arguments that stand for a job


def _split(arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], Job]:
    return arguments[:-_COUNT], decode(arguments[-_COUNT:])


def _register(
    name: str, signature: str, result: str, kernel: Callable[..., Any], fake: Callable[..., Any], function: Any
) -> None:
    """`kernel`, `fake` and what `function.apply` calls take the verb's own arguments and a job."""
    _library.define(f"{name}({signature}, {ARGUMENTS}) -> {result}", tags=(torch.Tag.pt2_compliant_tag,))
    op = getattr(torch.ops.cenote, name).default

    def on_cpu(*arguments: Any) -> Any:
        own, job = _split(arguments)
        return kernel(*own, job)

    def on_fake(*arguments: Any) -> Any:
        own, job = _split(arguments)
        return fake(*own, job)

    def on_autograd(keyset: Any, *arguments: Any) -> Any:
        own, job = _split(arguments)
        backward, forward = torch.is_grad_enabled(), torch._C._is_fwd_grad_enabled()

        def rest(*given: Any) -> Any:
            # A Function turns derivatives off; the outer levels of torch.func still want theirs.
            with torch.set_grad_enabled(backward), forward_ad._set_fwd_grad_enabled(forward), _below_autograd():
                return op.redispatch(keyset & torch._C._after_autograd_keyset, *given[:-1], *arguments[-_COUNT:])

        return rest(*own, job) if function is None else derivatives.apply(function, rest, job, *own)

    _library.impl(name, on_cpu, "CPU")
    _library.impl(name, on_autograd, "Autograd", with_keyset=True)
    torch.library.register_fake(f"cenote::{name}", on_fake, lib=_library)


# ---- what results look like --------------------------------------------------------------------------------------------


def _fake_pool(x: torch.Tensor, job: Job) -> torch.Tensor:
    kernels.check(x, "input", job.caller)
    return kernels.new(x, output_shape(job, x.shape), kernels.memory_format(x))


def _fake_pool_with_winners(x: torch.Tensor, job: Job) -> tuple[torch.Tensor, torch.Tensor]:
    winners = torch.empty(winners_shape(job, x.shape), dtype=torch.uint8, device=x.device)
    return _fake_pool(x, job), winners


def _fake_vjp(x: torch.Tensor, gy: torch.Tensor, job: Job) -> torch.Tensor:
    return kernels.new(x, x.shape, kernels.memory_format(x))


def _fake_jvp(x: torch.Tensor, dx: torch.Tensor, job: Job) -> torch.Tensor:
    return _fake_pool(x, job)


def _fake_transpose(gy: torch.Tensor, shape: Any, channels_last: bool, job: Job) -> torch.Tensor:
    return kernels.new(gy, shape, kernels.gradient_format(channels_last, len(shape)))


def _fake_pull(gy: torch.Tensor, winners: torch.Tensor, shape: Any, channels_last: bool, job: Job) -> torch.Tensor:
    return _fake_transpose(gy, shape, channels_last, job)


def _fake_push(dx: torch.Tensor, winners: torch.Tensor, job: Job) -> torch.Tensor:
    return _fake_pool(dx, job)


def _fake_indices(winners: torch.Tensor, shape: Any, job: Job) -> torch.Tensor:
    return torch.empty(output_shape(job, shape), dtype=torch.int64, device=winners.device)


_shape = "SymInt[] shape"
_like = "SymInt[] shape, bool channels_last"
_register("pool", "Tensor x", "Tensor", kernels.forward, _fake_pool, derivatives.Pool)
_register(
    "pool_with_winners",
    "Tensor x",
    "(Tensor, Tensor)",
    kernels.forward_with_winners,
    _fake_pool_with_winners,
    derivatives.PoolWithWinners,
)
_register("vjp", "Tensor x, Tensor gy", "Tensor", kernels.vjp, _fake_vjp, derivatives.Vjp)
_register("jvp", "Tensor x, Tensor dx", "Tensor", kernels.jvp, _fake_jvp, derivatives.Jvp)
_register("transpose", f"Tensor gy, {_like}", "Tensor", kernels.transpose, _fake_transpose, derivatives.Transpose)
_register("pull", f"Tensor gy, Tensor winners, {_like}", "Tensor", kernels.pull, _fake_pull, derivatives.Pull)
_register("push", "Tensor dx, Tensor winners", "Tensor", kernels.push, _fake_push, derivatives.Push)
_register("indices", f"Tensor winners, {_shape}", "Tensor", kernels.indices, _fake_indices, None)


# ---- vmap: the batch is one more axis in front that is not pooled -------------------------------------------------------


def _in_front(tensor: torch.Tensor, dim: int | None, size: int) -> torch.Tensor:
    return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def _batch(name: str, tensors: int, results: int) -> None:
    op = getattr(torch.ops.cenote, name)

    def rule(info: Any, in_dims: Any, *arguments: Any) -> Any:
        own, job = _split(arguments)
        size = info.batch_size
        fronted = [_in_front(t, dim, size) for t, dim in zip(own[:tensors], in_dims)]
        rest = own[tensors:]
        if rest:  # the input's shape, for verbs that do not have the input
            shape = tuple(rest[0])
            rest = ((size, *shape), False, *rest[2:]) if len(rest) > 1 else ((size, *shape),)
        else:
            shape = tuple(fronted[0].shape[1:])
        job = batched(job, shape)
        out = op(*fronted, *rest, *encode(job, (size, *shape)))
        return out, 0 if results == 1 else (0,) * results

    torch.library.register_vmap(f"cenote::{name}", rule, lib=_library)


_batch("pool", 1, 1)
_batch("pool_with_winners", 1, 2)
_batch("vjp", 2, 1)
_batch("jvp", 2, 1)
_batch("transpose", 1, 1)
_batch("pull", 2, 1)
_batch("push", 2, 1)
_batch("indices", 1, 1)
