"""PyTorch's names with PyTorch's signatures and defaults, and smooth maxima beside them.

Inputs are (C, spatial...) or (N, C, spatial...). Padding is symmetric and at most half the effective kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Union, overload

import torch

from .._tags import AVERAGE, MAX, SMOOTH_MAX, TORCH_ADAPTIVE, TORCH_LP, TORCH_SLIDING
from ._derivatives import pool, pool_with_indices
from ._kernels import memory_format

if TYPE_CHECKING:
    from .._torch_names import OutputSize
    from .._types import Ints

Tensor = torch.Tensor
MaybeIndices = Union[Tensor, tuple[Tensor, Tensor]]


def _wide(x: Tensor) -> Tensor:
    """PyTorch's autocast computes three pooled axes in float32 on the CPU."""
    if torch.is_autocast_enabled("cpu") and x.dtype in (torch.float16, torch.bfloat16):
        return x.float()
    return x


def _max(input: Tensor, windows: tuple[Any, ...], return_indices: bool, caller: str) -> MaybeIndices:
    call = (MAX, "first"), windows, caller
    if not return_indices:
        return pool(input, call)
    y, indices = pool_with_indices(input, call)
    return y, indices.contiguous(memory_format=memory_format(y))


@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...


@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...


def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaybeIndices:
    """`torch.nn.functional.max_pool1d`. For the backward pass it keeps one byte an output.

    >>> import torch, cenote.torch
    >>> x = torch.arange(8.0).reshape(1, 1, 8)
    >>> cenote.torch.max_pool1d(x, 2).flatten()
    tensor([1., 3., 5., 7.])
    """
    windows = (TORCH_SLIDING, 1, kernel_size, stride, padding, dilation, ceil_mode)
    return _max(input, windows, return_indices, "max_pool1d")


def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """`torch.nn.functional.avg_pool1d`. For the backward pass it keeps nothing.

    >>> import torch, cenote.torch
    >>> x = torch.arange(8.0).reshape(1, 1, 8)
    >>> cenote.torch.avg_pool1d(x, 2).flatten()
    tensor([0.5000, 2.5000, 4.5000, 6.5000])
    """
    windows = (TORCH_SLIDING, 1, kernel_size, stride, padding, 1, ceil_mode)
    return pool(input, ((AVERAGE, count_include_pad, None), windows, "avg_pool1d"))


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`torch.nn.functional.lp_pool1d`, with |x|**p also where p is odd, and no factor for windows cut by ceil rounding.

    >>> import torch, cenote.torch
    >>> x = torch.arange(8.0).reshape(1, 1, 8)
    >>> cenote.torch.lp_pool1d(x, 1, 2).flatten()
    tensor([ 1.,  5.,  9., 13.])
    """
    windows = (TORCH_SLIDING, 1, kernel_size, stride, 0, 1, ceil_mode)
    return pool(input, ((TORCH_LP, norm_type), windows, "lp_pool1d"))


def smooth_max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    *,
    beta: float,
    padding_mode: str = "zeros",
) -> Tensor:
    """log(sum(exp(beta * x))) / beta of each window: a maximum that every cell has a part in.

    Padding counts as zeros, or not at all (`padding_mode="ignore"`).

    >>> import torch, cenote.torch
    >>> x = torch.arange(8.0).reshape(1, 1, 8)
    >>> cenote.torch.smooth_max_pool1d(x, 2, beta=10.0).flatten()
    tensor([1.0000, 3.0000, 5.0000, 7.0000])
    """
    windows = (TORCH_SLIDING, 1, kernel_size, stride, padding, dilation, ceil_mode)
    return pool(input, ((SMOOTH_MAX, beta, padding_mode), windows, "smooth_max_pool1d"))


@overload
def adaptive_max_pool1d(
    input: Tensor,
    output_size: OutputSize,
    return_indices: Literal[False] = False,
) -> Tensor: ...


@overload
def adaptive_max_pool1d(
    input: Tensor,
    output_size: OutputSize,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...


def adaptive_max_pool1d(input: Tensor, output_size: OutputSize, return_indices: bool = False) -> MaybeIndices:
    """`torch.nn.functional.adaptive_max_pool1d`; None keeps an axis as it is.

    >>> import torch, cenote.torch
    >>> x = torch.arange(8.0).reshape(1, 1, 8)
    >>> cenote.torch.adaptive_max_pool1d(x, 1).flatten()
    tensor([7.])
    """
    return _max(input, (TORCH_ADAPTIVE, 1, output_size), return_indices, "adaptive_max_pool1d")


def adaptive_avg_pool1d(input: Tensor, output_size: OutputSize) -> Tensor:
    """`torch.nn.functional.adaptive_avg_pool1d`; None keeps an axis as it is.

    >>> import torch, cenote.torch
    >>> x = torch.arange(8.0).reshape(1, 1, 8)
    >>> cenote.torch.adaptive_avg_pool1d(x, 1).flatten()
    tensor([3.5000])
    """
    return pool(input, ((AVERAGE, True, None), (TORCH_ADAPTIVE, 1, output_size), "adaptive_avg_pool1d"))


@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...


@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...


def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaybeIndices:
    """`torch.nn.functional.max_pool2d`. For the backward pass it keeps one byte an output.

    >>> import torch, cenote.torch
    >>> x = torch.arange(16.0).reshape(1, 1, 4, 4)
    >>> cenote.torch.max_pool2d(x, 2).flatten()
    tensor([ 5.,  7., 13., 15.])
    """
    windows = (TORCH_SLIDING, 2, kernel_size, stride, padding, dilation, ceil_mode)
    return _max(input, windows, return_indices, "max_pool2d")


def avg_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """`torch.nn.functional.avg_pool2d`. For the backward pass it keeps nothing.

    >>> import torch, cenote.torch
    >>> x = torch.arange(16.0).reshape(1, 1, 4, 4)
    >>> cenote.torch.avg_pool2d(x, 2).flatten()
    tensor([ 2.5000,  4.5000, 10.5000, 12.5000])
    """
    windows = (TORCH_SLIDING, 2, kernel_size, stride, padding, 1, ceil_mode)
    return pool(input, ((AVERAGE, count_include_pad, divisor_override), windows, "avg_pool2d"))


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`torch.nn.functional.lp_pool2d`, with |x|**p also where p is odd, and no factor for windows cut by ceil rounding.

    >>> import torch, cenote.torch
    >>> x = torch.arange(16.0).reshape(1, 1, 4, 4)
    >>> cenote.torch.lp_pool2d(x, 1, 2).flatten()
    tensor([10., 18., 42., 50.])
    """
    windows = (TORCH_SLIDING, 2, kernel_size, stride, 0, 1, ceil_mode)
    return pool(input, ((TORCH_LP, norm_type), windows, "lp_pool2d"))


def smooth_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    *,
    beta: float,
    padding_mode: str = "zeros",
) -> Tensor:
    """log(sum(exp(beta * x))) / beta of each window: a maximum that every cell has a part in.

    Padding counts as zeros, or not at all (`padding_mode="ignore"`).

    >>> import torch, cenote.torch
    >>> x = torch.arange(16.0).reshape(1, 1, 4, 4)
    >>> cenote.torch.smooth_max_pool2d(x, 2, beta=10.0).flatten()
    tensor([ 5.0000,  7.0000, 13.0000, 15.0000])
    """
    windows = (TORCH_SLIDING, 2, kernel_size, stride, padding, dilation, ceil_mode)
    return pool(input, ((SMOOTH_MAX, beta, padding_mode), windows, "smooth_max_pool2d"))


@overload
def adaptive_max_pool2d(
    input: Tensor,
    output_size: OutputSize,
    return_indices: Literal[False] = False,
) -> Tensor: ...


@overload
def adaptive_max_pool2d(
    input: Tensor,
    output_size: OutputSize,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...


def adaptive_max_pool2d(input: Tensor, output_size: OutputSize, return_indices: bool = False) -> MaybeIndices:
    """`torch.nn.functional.adaptive_max_pool2d`; None keeps an axis as it is.

    >>> import torch, cenote.torch
    >>> x = torch.arange(16.0).reshape(1, 1, 4, 4)
    >>> cenote.torch.adaptive_max_pool2d(x, 1).flatten()
    tensor([15.])
    """
    return _max(input, (TORCH_ADAPTIVE, 2, output_size), return_indices, "adaptive_max_pool2d")


def adaptive_avg_pool2d(input: Tensor, output_size: OutputSize) -> Tensor:
    """`torch.nn.functional.adaptive_avg_pool2d`; None keeps an axis as it is.

    >>> import torch, cenote.torch
    >>> x = torch.arange(16.0).reshape(1, 1, 4, 4)
    >>> cenote.torch.adaptive_avg_pool2d(x, 1).flatten()
    tensor([7.5000])
    """
    return pool(input, ((AVERAGE, True, None), (TORCH_ADAPTIVE, 2, output_size), "adaptive_avg_pool2d"))


@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...


@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...


def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaybeIndices:
    """`torch.nn.functional.max_pool3d`. For the backward pass it keeps one byte an output.

    >>> import torch, cenote.torch
    >>> x = torch.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> cenote.torch.max_pool3d(x, 2).flatten()
    tensor([7.])
    """
    windows = (TORCH_SLIDING, 3, kernel_size, stride, padding, dilation, ceil_mode)
    return _max(_wide(input), windows, return_indices, "max_pool3d")


def avg_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """`torch.nn.functional.avg_pool3d`. For the backward pass it keeps nothing.

    >>> import torch, cenote.torch
    >>> x = torch.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> cenote.torch.avg_pool3d(x, 2).flatten()
    tensor([3.5000])
    """
    windows = (TORCH_SLIDING, 3, kernel_size, stride, padding, 1, ceil_mode)
    return pool(_wide(input), ((AVERAGE, count_include_pad, divisor_override), windows, "avg_pool3d"))


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """`torch.nn.functional.lp_pool3d`, with |x|**p also where p is odd, and no factor for windows cut by ceil rounding.

    >>> import torch, cenote.torch
    >>> x = torch.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> cenote.torch.lp_pool3d(x, 1, 2).flatten()
    tensor([28.])
    """
    windows = (TORCH_SLIDING, 3, kernel_size, stride, 0, 1, ceil_mode)
    return pool(_wide(input), ((TORCH_LP, norm_type), windows, "lp_pool3d"))


def smooth_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    *,
    beta: float,
    padding_mode: str = "zeros",
) -> Tensor:
    """log(sum(exp(beta * x))) / beta of each window: a maximum that every cell has a part in.

    Padding counts as zeros, or not at all (`padding_mode="ignore"`).

    >>> import torch, cenote.torch
    >>> x = torch.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> cenote.torch.smooth_max_pool3d(x, 2, beta=10.0).flatten()
    tensor([7.0000])
    """
    windows = (TORCH_SLIDING, 3, kernel_size, stride, padding, dilation, ceil_mode)
    return pool(input, ((SMOOTH_MAX, beta, padding_mode), windows, "smooth_max_pool3d"))


@overload
def adaptive_max_pool3d(
    input: Tensor,
    output_size: OutputSize,
    return_indices: Literal[False] = False,
) -> Tensor: ...


@overload
def adaptive_max_pool3d(
    input: Tensor,
    output_size: OutputSize,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...


def adaptive_max_pool3d(input: Tensor, output_size: OutputSize, return_indices: bool = False) -> MaybeIndices:
    """`torch.nn.functional.adaptive_max_pool3d`; None keeps an axis as it is.

    >>> import torch, cenote.torch
    >>> x = torch.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> cenote.torch.adaptive_max_pool3d(x, 1).flatten()
    tensor([7.])
    """
    return _max(_wide(input), (TORCH_ADAPTIVE, 3, output_size), return_indices, "adaptive_max_pool3d")


def adaptive_avg_pool3d(input: Tensor, output_size: OutputSize) -> Tensor:
    """`torch.nn.functional.adaptive_avg_pool3d`; None keeps an axis as it is.

    >>> import torch, cenote.torch
    >>> x = torch.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> cenote.torch.adaptive_avg_pool3d(x, 1).flatten()
    tensor([3.5000])
    """
    return pool(_wide(input), ((AVERAGE, True, None), (TORCH_ADAPTIVE, 3, output_size), "adaptive_avg_pool3d"))
