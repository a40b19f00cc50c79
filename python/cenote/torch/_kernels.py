"""The verbs on the memory of torch's tensors. Nothing here knows of derivatives or of torch's dispatcher."""

from __future__ import annotations

from typing import Any

import torch

from .. import _core
from ._encoding import Call, Job

_MARK = min(_core.type_numbers().values())
TYPES = {getattr(torch, name): None for name in _core.type_numbers() if hasattr(torch, name)}  # in the library's order
_threads = torch.get_num_threads  # what torch's own operators use, in the workers of a DataLoader one


def check(x: Any, name: str, caller: str) -> None:
    """TypeError or ValueError unless x is a tensor that the kernels can read."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{caller}: {name} is of type {type(x).__name__}; give a torch.Tensor")
    if not (x.is_cpu or x.is_meta):
        raise ValueError(f"{caller}: {name} is on {x.device}; cenote computes on the CPU, move it there with .cpu()")
    if x.layout is not torch.strided:
        raise TypeError(f"{caller}: {name} has the layout {x.layout}; use .to_dense()")
    if x.dtype not in TYPES:
        legal = ", ".join(str(dtype) for dtype in TYPES)
        raise TypeError(f"{caller}: {name} has dtype {x.dtype}; legal are {legal}")


def memory_format(x: torch.Tensor) -> torch.memory_format:
    """The format that PyTorch would give to what it computes from x."""
    stride = x.stride()
    if len(stride) in (4, 5) and stride[1] <= stride[-1]:  # unlike anything contiguous, but for axes of one cell
        return torch._prims_common.suggest_memory_format(x)
    return torch.contiguous_format


def gradient_format(channels_last: bool, rank: int) -> torch.memory_format:
    if not channels_last:
        return torch.contiguous_format
    return torch.channels_last if rank == 4 else torch.channels_last_3d


def new(like: torch.Tensor, shape: Any, format: torch.memory_format) -> torch.Tensor:
    if format is torch.contiguous_format or len(shape) not in (4, 5):
        return like.new_empty(shape)
    return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=format)


def new_last(like: torch.Tensor, shape: Any) -> torch.Tensor:
    """Of a memory format with channels last, where there is one for so many axes."""
    return new(like, shape, gradient_format(True, len(shape)))


def _maker(like: torch.Tensor, format: torch.memory_format) -> tuple[Any, int]:
    """What the compiled part calls for a result, with sizes, or with () where there are none."""
    if format is torch.contiguous_format:
        return like.new_empty, _MARK
    return (lambda *sizes: new(like, sizes if sizes != ((),) else (), format)), _MARK


def _new_like(x: torch.Tensor) -> tuple[Any, int]:
    """The same for what is computed from x."""
    return _maker(x, memory_format(x))


# Methods of tensors are what makes others the fastest, and they do not ask for the default device.
new_bytes = torch.empty(0, dtype=torch.uint8, device="cpu").new_empty
new_indices = torch.empty(0, dtype=torch.int64, device="cpu").new_empty


# A tensor beside the mark is one that the compiled part reads where it lies, whatever it is: `check` has been there before.
# A function beside it is called for a tensor, with the sizes one by one, which torch reads faster than a tuple of them.


def forward(x: torch.Tensor, job: Call) -> torch.Tensor:
    return _core.forward(job[0], job[1], (x, _MARK), _new_like(x), job[2], _threads())  # type: ignore[return-value]


def forward_with_winners(x: torch.Tensor, job: Job) -> tuple[torch.Tensor, torch.Tensor]:
    to = _new_like(x), (new_bytes, _MARK)
    return _core.forward_with_winners(job.op, job.windows, (x, _MARK), *to, job.caller, _threads())


def jvp(x: torch.Tensor, dx: torch.Tensor, job: Job) -> torch.Tensor:
    of = job.op, job.windows, (x, _MARK), (dx, _MARK)
    return _core.jvp(*of, _new_like(x), job.caller, _threads())  # type: ignore[return-value]


def forward_and_jvp(x: torch.Tensor, dx: torch.Tensor, job: Job) -> tuple[torch.Tensor, torch.Tensor]:
    return _core.forward_and_jvp(job.op, job.windows, (x, _MARK), (dx, _MARK), _new_like(x), job.caller, _threads())


def vjp(x: torch.Tensor, gy: torch.Tensor, job: Job) -> torch.Tensor:
    of = job.op, job.windows, (x, _MARK), (gy, _MARK)
    return _core.vjp(*of, _new_like(x), job.caller, _threads())  # type: ignore[return-value]


def transpose(gy: torch.Tensor, shape: Any, channels_last: bool, job: Job) -> torch.Tensor:
    gx = _maker(gy, gradient_format(channels_last, len(shape)))
    of = job.op, job.windows, tuple(shape), (gy, _MARK)
    return _core.vjp(*of, gx, job.caller, _threads())  # type: ignore[return-value]


def pull(gy: torch.Tensor, winners: torch.Tensor, shape: Any, channels_last: bool, job: Job) -> torch.Tensor:
    gx = _maker(gy, gradient_format(channels_last, len(shape)))
    of = job.windows, tuple(shape), (winners.contiguous(), _MARK), (gy, _MARK)
    return _core.pull_winners(*of, gx, job.caller, _threads())  # type: ignore[return-value]


def push(dx: torch.Tensor, winners: torch.Tensor, job: Job) -> torch.Tensor:
    of = job.windows, tuple(dx.shape), (winners.contiguous(), _MARK)
    return _core.push_winners(*of, (dx, _MARK), _new_like(dx), job.caller, _threads())  # type: ignore[return-value]


def indices(winners: torch.Tensor, shape: Any, job: Job) -> torch.Tensor:
    of = job.windows, tuple(shape), (winners.contiguous(), _MARK)
    return _core.flat_indices(*of, (new_indices, _MARK))  # type: ignore[return-value]
