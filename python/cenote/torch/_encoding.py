"""Operators and windows in the two forms that they have here, and shapes that follow from windows.

Calls on memory take the tuples of `_tags`, which are what the compiled part reads. Operators registered with torch take
numbers and strings that a graph can hold, print and trace symbolically. This file goes from one to the other.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch

from .. import _core
from .._tags import (
    ADAPTIVE,
    AVERAGE,
    GLOBAL,
    LP,
    MAX,
    MIN,
    SLIDING,
    SMOOTH_MAX,
    SUM,
    TORCH_ADAPTIVE,
    TORCH_LP,
    TORCH_SLIDING,
)

ARGUMENTS = (
    "str op, float? parameter, str windows, SymInt[] size, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
    "int[] axes, str caller"
)


# What to compute: an operator and windows as tuples of `_tags`, and what messages call it. Functions pass it as the plain
# tuple that costs them the least; whatever does more than hand it to a kernel makes it a Job.
Call = tuple[tuple[Any, ...], tuple[Any, ...], str]


class Job(NamedTuple):
    """A Call whose parts have names."""

    op: tuple[Any, ...]
    windows: tuple[Any, ...]
    caller: str


def is_linear(call: Call) -> bool:
    return call[0][0] in (AVERAGE, SUM)


def keeps_winners(call: Call) -> bool:
    """Whether the derivative needs the winners alone: one byte an output instead of the input."""
    op = call[0]
    return op[0] in (MAX, MIN) and op[1] == "first"


# ---- to arguments of registered operators: traced by torch.compile, so plain Python and nothing compiled ----------------


def _numbers(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _encode_op(op: tuple[Any, ...]) -> tuple[str, float | None]:
    tag = op[0]
    if tag == MAX:
        return f"max:{op[1]}", None
    if tag == MIN:
        return f"min:{op[1]}", None
    if tag == AVERAGE:
        if op[2] is not None:
            return "average:override", op[2]
        return ("average:padded" if op[1] else "average:real"), None
    if tag == SUM:
        return "sum", None
    if tag == SMOOTH_MAX:
        return f"smooth_max:{op[2]}", op[1]
    return ("lp" if tag == LP else "torch_lp"), op[1]


def _last(count: int) -> list[int]:
    return list(range(-count, 0))


def _from_end(axes: Any, rank: int) -> list[int]:
    """Axes counted from the end, where another axis in front does not move them."""
    return [a - rank if 0 <= a < rank else a for a in _numbers(axes)]


def _named_axes(axes: Any, sizes: Any, rank: int) -> list[int]:
    """The axes named, or the last ones. None where one number stands for axes that nobody named: the library complains."""
    if axes is not None:
        return _from_end(axes, rank)
    return _last(len(sizes)) if isinstance(sizes, (tuple, list)) else []


def _encode_padding(padding: Any) -> tuple[str, list[Any]]:
    if isinstance(padding, str):
        return f" {padding}", []
    entries = _numbers(padding)
    if any(isinstance(entry, (tuple, list)) for entry in entries):
        pairs = [list(entry) if isinstance(entry, (tuple, list)) else [entry, entry] for entry in entries]
        return " pairs", [number for pair in pairs for number in pair]
    return "", entries


def _encode_windows(windows: tuple[Any, ...], shape: Any) -> tuple[Any, ...]:
    tag, rank = windows[0], len(shape)
    if tag == SLIDING:
        _, kernel, stride, padding, dilation, ceil, axes = windows
        mode, pads = _encode_padding(padding)
        named = _named_axes(axes, kernel, rank)
        kind = "sliding" + mode + (" ceil" if ceil else "")
        return kind, _numbers(kernel), _numbers(stride), pads, _numbers(dilation), named
    if tag == TORCH_SLIDING:
        _, count, kernel, stride, padding, dilation, ceil = windows
        kind = "torch_sliding" + (" ceil" if ceil else "")
        return kind, _numbers(kernel), _numbers(stride), _numbers(padding), _numbers(dilation), _last(count)
    if tag == ADAPTIVE:
        _, size, axes = windows
        return "adaptive", _numbers(size), [], [], [], _named_axes(axes, size, rank)
    if tag == TORCH_ADAPTIVE:
        _, count, size = windows
        sizes = list(size) if isinstance(size, (tuple, list)) else [size] * count
        if len(sizes) == count and rank >= count:  # None keeps an axis as it is
            sizes = [n if m is None else m for m, n in zip(sizes, shape[rank - count :])]
        return "torch_adaptive", sizes, [], [], [], _last(count)
    _, last, axes, keep = windows
    named = _from_end(axes, rank) if axes is not None else _last(last or 0)
    return "global" + ("" if keep else " dropped"), [], [], [], [], named


def encode(job: Job, shape: Any) -> tuple[Any, ...]:
    """The arguments that stand for `job` on an input of `shape`."""
    return (*_encode_op(job.op), *_encode_windows(job.windows, shape), job.caller)


# ---- and back ----------------------------------------------------------------------------------------------------------


def _decode_op(op: str, parameter: float | None) -> tuple[Any, ...]:
    name, _, option = op.partition(":")
    if name == "max":
        return MAX, option
    if name == "min":
        return MIN, option
    if name == "average":
        return AVERAGE, option != "real", int(parameter) if option == "override" and parameter is not None else None
    if name == "sum":
        return (SUM,)
    if name == "smooth_max":
        return SMOOTH_MAX, parameter, option
    if name in ("lp", "torch_lp"):
        return (LP if name == "lp" else TORCH_LP), parameter
    raise ValueError(f"cenote: {op!r} is no operator of torch.ops.cenote")


def _decode_windows(
    windows: str, size: Any, stride: Any, padding: Any, dilation: Any, axes: tuple[int, ...]
) -> tuple[Any, ...]:
    kind, *options = windows.split()
    ceil = "ceil" in options
    if kind == "sliding":
        pads = padding
        if "pairs" in options:
            pads = tuple(zip(padding[::2], padding[1::2]))
        for name in ("same", "same_lower", "valid"):
            if name in options:
                pads = name
        if not axes and len(size) == 1:
            return SLIDING, size[0], stride or None, pads, dilation, ceil, None
        return SLIDING, size, stride or None, pads, dilation, ceil, axes
    if kind == "torch_sliding":
        return TORCH_SLIDING, len(axes), size, stride or None, padding, dilation, ceil
    if kind == "adaptive":
        return (ADAPTIVE, size, axes) if axes else (ADAPTIVE, size[0], None)
    if kind == "torch_adaptive":
        return TORCH_ADAPTIVE, len(axes), size
    if kind == "global":
        return GLOBAL, None, axes or None, "dropped" not in options
    raise ValueError(f"cenote: {windows!r} are no windows of torch.ops.cenote")


@lru_cache(maxsize=1024)
def _decode(
    op: str,
    parameter: float | None,
    windows: str,
    size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    axes: Any,
    caller: str,
) -> Job:
    return Job(_decode_op(op, parameter), _decode_windows(windows, size, stride, padding, dilation, axes), caller)


def decode(arguments: tuple[Any, ...]) -> Job:
    """The job that the arguments of a registered operator stand for."""
    plain = tuple(tuple(a) if isinstance(a, (list, tuple)) else a for a in arguments)
    if all(isinstance(n, int) for a in plain[3:8] for n in a):
        return _decode(*plain)
    return _decode.__wrapped__(*plain)  # symbols are not for a cache


def batched(job: Job, shape: Any) -> Job:
    """The same windows on inputs that have another axis in front. `shape` is what one of them has."""
    output_shape(job, shape)  # PyTorch's names take one rank or two: checked here, where the rank is still the caller's
    tag = job.windows[0]
    if tag == TORCH_SLIDING:
        _, count, kernel, stride, padding, dilation, ceil = job.windows
        return job._replace(windows=(SLIDING, kernel, stride, padding, dilation, ceil, tuple(_last(count))))
    if tag == TORCH_ADAPTIVE:
        _, count, size = job.windows
        return job._replace(windows=(ADAPTIVE, size, tuple(_last(count))))
    return job  # whose axes count from the end


# ---- shapes ------------------------------------------------------------------------------------------------------------


def _each(value: Any, count: int) -> Any:
    return list(value) * count if len(value) == 1 else value


def _pooled_axes(windows: tuple[Any, ...], rank: int) -> list[int]:
    tag = windows[0]
    if tag in (TORCH_SLIDING, TORCH_ADAPTIVE):
        return [rank + a for a in _last(windows[1])]
    axes = {SLIDING: 6, ADAPTIVE: 2, GLOBAL: 2}[tag]
    return [rank + a for a in windows[axes] or ()]


def _sliding_sizes(windows: tuple[Any, ...], cells: list[Any]) -> list[Any]:
    """G2 and G3 of sizes that are symbols."""
    count = len(cells)
    if windows[0] == TORCH_SLIDING:
        _, _, kernel, stride, padding, dilation, ceil = windows
    else:
        _, kernel, stride, padding, dilation, ceil, _ = windows
    kernels = _each(kernel, count)
    strides = _each(stride, count) if stride else kernels
    if padding in ("same", "same_lower"):
        return [(n + s - 1) // s for n, s in zip(cells, strides)]
    pads = [(0, 0)] * count if padding == "valid" else [p if isinstance(p, tuple) else (p, p) for p in _each(padding, count)]
    out = []
    for n, k, s, (low, high), r in zip(cells, kernels, strides, pads, _each(dilation, count)):
        spare = n + low + high - r * (k - 1) - 1
        size = (spare + (s - 1 if ceil else 0)) // s + 1
        if ceil and (size - 1) * s >= n + low:
            size = size - 1
        out.append(size)
    return out


def output_shape(job: Job, shape: Any) -> tuple[Any, ...]:
    """The shape of the result, checked by the library where it is numbers."""
    windows = job.windows
    known = all(isinstance(n, int) for n in shape)
    if known and _all_numbers(windows):
        return tuple(_core.output_shape(windows, tuple(shape), job.caller))
    pooled = _pooled_axes(windows, len(shape))
    if all(isinstance(shape[a], int) for a in pooled) and _all_numbers(windows):
        sizes = [n if a in pooled or isinstance(n, int) else 1 for a, n in enumerate(shape)]
        out = list(_core.output_shape(windows, tuple(sizes), job.caller))
        if len(out) == len(shape):
            return tuple(m if a in pooled else shape[a] for a, m in enumerate(out))
    cells = [shape[a] for a in pooled]
    if windows[0] in (SLIDING, TORCH_SLIDING):
        results = _sliding_sizes(windows, cells)
    elif windows[0] == GLOBAL:
        results = [1] * len(cells)
        if not windows[3]:
            return tuple(n for a, n in enumerate(shape) if a not in pooled)
    else:
        results = list(_each(windows[1] if windows[0] == ADAPTIVE else windows[2], len(cells)))
    return tuple(results[pooled.index(a)] if a in pooled else n for a, n in enumerate(shape))


def _all_numbers(windows: tuple[Any, ...]) -> bool:
    return not any(
        isinstance(n, torch.SymInt) for entry in windows for n in (entry if isinstance(entry, (tuple, list)) else (entry,))
    )


def winner_bytes(job: Job, shape: Any) -> int:
    """How many bytes the winner of an output takes."""
    windows = job.windows
    pooled = _pooled_axes(windows, len(shape)) if not all(isinstance(n, int) for n in shape) else []
    # Identity axes do not matter; symbols on pooled ones are settled for this.
    sizes = tuple(n if isinstance(n, int) else int(n) if a in pooled else 1 for a, n in enumerate(shape))
    plain = tuple(
        tuple(int(n) if isinstance(n, torch.SymInt) else n for n in entry) if isinstance(entry, (tuple, list)) else entry
        for entry in windows
    )
    return int(_core.winner_bytes(plain, sizes))


def winners_shape(job: Job, shape: Any) -> tuple[Any, ...]:
    out = output_shape(job, shape)
    each = winner_bytes(job, shape)
    return out if each == 1 else (*out, each)
