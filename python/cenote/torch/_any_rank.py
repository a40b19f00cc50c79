"""Any number of pooled axes, and any axes: `max_pool`, `adaptive_avg_pool`, `global_smooth_max_pool` and their relatives.

The arguments mean what they mean in the functions of the same names for numpy arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Union, overload

import torch

from .._tags import ADAPTIVE, AVERAGE, GLOBAL, LP, MAX, MIN, SLIDING, SMOOTH_MAX, SUM
from ._derivatives import pool, pool_with_indices
from ._encoding import Call

if TYPE_CHECKING:
    from .._types import Ints, Padding

Tensor = torch.Tensor
MaybeIndices = Union[Tensor, tuple[Tensor, Tensor]]


def _selected(x: Tensor, call: Call, return_indices: bool) -> MaybeIndices:
    return pool_with_indices(x, call) if return_indices else pool(x, call)


@overload
def max_pool(
    x: Tensor,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    ties: str = "first",
    axes: Ints | None = None,
    return_indices: Literal[False] = False,
) -> Tensor: ...


@overload
def max_pool(
    x: Tensor,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    ties: str = "first",
    axes: Ints | None = None,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...


def max_pool(
    x: Tensor,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    ties: str = "first",
    axes: Ints | None = None,
    return_indices: bool = False,
) -> MaybeIndices:
    """The largest cell of each window.

    >>> import torch, cenote.torch
    >>> cenote.torch.max_pool(torch.tensor([1.0, 5, 2, 0]), (2,))
    tensor([5., 2.])
    """
    windows = (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes)
    return _selected(x, ((MAX, ties), windows, "max_pool"), return_indices)


@overload
def min_pool(
    x: Tensor,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    ties: str = "first",
    axes: Ints | None = None,
    return_indices: Literal[False] = False,
) -> Tensor: ...


@overload
def min_pool(
    x: Tensor,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    ties: str = "first",
    axes: Ints | None = None,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...


def min_pool(
    x: Tensor,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    ties: str = "first",
    axes: Ints | None = None,
    return_indices: bool = False,
) -> MaybeIndices:
    """The smallest cell of each window.

    >>> import torch, cenote.torch
    >>> cenote.torch.min_pool(torch.tensor([1.0, 5, 2, 0]), (2,))
    tensor([1., 0.])
    """
    windows = (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes)
    return _selected(x, ((MIN, ties), windows, "min_pool"), return_indices)


def avg_pool(
    x: Tensor,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    axes: Ints | None = None,
) -> Tensor:
    """The mean of each window.

    >>> import torch, cenote.torch
    >>> cenote.torch.avg_pool(torch.tensor([1.0, 5, 2, 0]), (2,))
    tensor([3., 1.])
    """
    windows = (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes)
    return pool(x, ((AVERAGE, count_include_pad, divisor_override), windows, "avg_pool"))


def sum_pool(
    x: Tensor,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
) -> Tensor:
    """The sum of each window.

    >>> import torch, cenote.torch
    >>> cenote.torch.sum_pool(torch.tensor([1.0, 5, 2, 0]), (2,))
    tensor([6., 2.])
    """
    windows = (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes)
    return pool(x, ((SUM,), windows, "sum_pool"))


def smooth_max_pool(
    x: Tensor,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    beta: float,
    ceil_mode: bool = False,
    padding_mode: str = "zeros",
    axes: Ints | None = None,
) -> Tensor:
    """The smooth maximum, log(sum(exp(beta * x))) / beta, of each window.

    >>> import torch, cenote.torch
    >>> cenote.torch.smooth_max_pool(torch.tensor([1.0, 5, 2, 0]), (2,), beta=10.0)
    tensor([5., 2.])
    """
    windows = (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes)
    return pool(x, ((SMOOTH_MAX, beta, padding_mode), windows, "smooth_max_pool"))


def lp_pool(
    x: Tensor,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    p: float,
    ceil_mode: bool = False,
    axes: Ints | None = None,
) -> Tensor:
    """The p-norm of each window.

    >>> import torch, cenote.torch
    >>> cenote.torch.lp_pool(torch.tensor([1.0, 5, 2, 0]), (2,), p=1)
    tensor([6., 2.])
    """
    windows = (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes)
    return pool(x, ((LP, p), windows, "lp_pool"))


@overload
def adaptive_max_pool(
    x: Tensor,
    output_size: Ints,
    *,
    ties: str = "first",
    axes: Ints | None = None,
    return_indices: Literal[False] = False,
) -> Tensor: ...


@overload
def adaptive_max_pool(
    x: Tensor,
    output_size: Ints,
    *,
    ties: str = "first",
    axes: Ints | None = None,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...


def adaptive_max_pool(
    x: Tensor,
    output_size: Ints,
    *,
    ties: str = "first",
    axes: Ints | None = None,
    return_indices: bool = False,
) -> MaybeIndices:
    """The largest cell of each of `output_size` windows.

    >>> import torch, cenote.torch
    >>> cenote.torch.adaptive_max_pool(torch.tensor([1.0, 5, 2, 0, 3]), (2,))
    tensor([5., 3.])
    """
    windows = (ADAPTIVE, output_size, axes)
    return _selected(x, ((MAX, ties), windows, "adaptive_max_pool"), return_indices)


@overload
def adaptive_min_pool(
    x: Tensor,
    output_size: Ints,
    *,
    ties: str = "first",
    axes: Ints | None = None,
    return_indices: Literal[False] = False,
) -> Tensor: ...


@overload
def adaptive_min_pool(
    x: Tensor,
    output_size: Ints,
    *,
    ties: str = "first",
    axes: Ints | None = None,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...


def adaptive_min_pool(
    x: Tensor,
    output_size: Ints,
    *,
    ties: str = "first",
    axes: Ints | None = None,
    return_indices: bool = False,
) -> MaybeIndices:
    """The smallest cell of each of `output_size` windows.

    >>> import torch, cenote.torch
    >>> cenote.torch.adaptive_min_pool(torch.tensor([1.0, 5, 2, 0, 3]), (2,))
    tensor([1., 0.])
    """
    windows = (ADAPTIVE, output_size, axes)
    return _selected(x, ((MIN, ties), windows, "adaptive_min_pool"), return_indices)


def adaptive_avg_pool(
    x: Tensor,
    output_size: Ints,
    *,
    axes: Ints | None = None,
) -> Tensor:
    """The mean of each of `output_size` windows.

    >>> import torch, cenote.torch
    >>> cenote.torch.adaptive_avg_pool(torch.tensor([1.0, 5, 2, 0, 3]), (2,))
    tensor([2.6667, 1.6667])
    """
    windows = (ADAPTIVE, output_size, axes)
    return pool(x, ((AVERAGE, True, None), windows, "adaptive_avg_pool"))


def adaptive_sum_pool(
    x: Tensor,
    output_size: Ints,
    *,
    axes: Ints | None = None,
) -> Tensor:
    """The sum of each of `output_size` windows.

    >>> import torch, cenote.torch
    >>> cenote.torch.adaptive_sum_pool(torch.tensor([1.0, 5, 2, 0, 3]), (2,))
    tensor([8., 5.])
    """
    windows = (ADAPTIVE, output_size, axes)
    return pool(x, ((SUM,), windows, "adaptive_sum_pool"))


def adaptive_smooth_max_pool(
    x: Tensor,
    output_size: Ints,
    *,
    beta: float,
    axes: Ints | None = None,
) -> Tensor:
    """The smooth maximum, log(sum(exp(beta * x))) / beta, of each of `output_size` windows.

    >>> import torch, cenote.torch
    >>> cenote.torch.adaptive_smooth_max_pool(torch.tensor([1.0, 5, 2, 0, 3]), (2,), beta=10.0)
    tensor([5.0000, 3.0000])
    """
    windows = (ADAPTIVE, output_size, axes)
    return pool(x, ((SMOOTH_MAX, beta, "zeros"), windows, "adaptive_smooth_max_pool"))


def adaptive_lp_pool(
    x: Tensor,
    output_size: Ints,
    *,
    p: float,
    axes: Ints | None = None,
) -> Tensor:
    """The p-norm of each of `output_size` windows.

    >>> import torch, cenote.torch
    >>> cenote.torch.adaptive_lp_pool(torch.tensor([1.0, 5, 2, 0, 3]), (2,), p=1)
    tensor([8., 5.])
    """
    windows = (ADAPTIVE, output_size, axes)
    return pool(x, ((LP, p), windows, "adaptive_lp_pool"))


def global_max_pool(
    x: Tensor,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    ties: str = "all",
) -> Tensor:
    """The largest cell of all cells of the last `spatial_dims` axes, or of the ones that `axes` names.

    >>> import torch, cenote.torch
    >>> cenote.torch.global_max_pool(torch.tensor([[1.0, 5], [7, 7]]), spatial_dims=1, keepdims=False)
    tensor([5., 7.])
    """
    windows = (GLOBAL, spatial_dims, axes, keepdims)
    return pool(x, ((MAX, ties), windows, "global_max_pool"))


def global_min_pool(
    x: Tensor,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    ties: str = "all",
) -> Tensor:
    """The smallest cell of all cells of the last `spatial_dims` axes, or of the ones that `axes` names.

    >>> import torch, cenote.torch
    >>> cenote.torch.global_min_pool(torch.tensor([[1.0, 5], [7, 7]]), spatial_dims=1, keepdims=False)
    tensor([1., 7.])
    """
    windows = (GLOBAL, spatial_dims, axes, keepdims)
    return pool(x, ((MIN, ties), windows, "global_min_pool"))


def global_avg_pool(
    x: Tensor,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
) -> Tensor:
    """The mean of all cells of the last `spatial_dims` axes, or of the ones that `axes` names.

    >>> import torch, cenote.torch
    >>> cenote.torch.global_avg_pool(torch.tensor([[1.0, 5], [7, 7]]), spatial_dims=1, keepdims=False)
    tensor([3., 7.])
    """
    windows = (GLOBAL, spatial_dims, axes, keepdims)
    return pool(x, ((AVERAGE, True, None), windows, "global_avg_pool"))


def global_sum_pool(
    x: Tensor,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
) -> Tensor:
    """The sum of all cells of the last `spatial_dims` axes, or of the ones that `axes` names.

    >>> import torch, cenote.torch
    >>> cenote.torch.global_sum_pool(torch.tensor([[1.0, 5], [7, 7]]), spatial_dims=1, keepdims=False)
    tensor([ 6., 14.])
    """
    windows = (GLOBAL, spatial_dims, axes, keepdims)
    return pool(x, ((SUM,), windows, "global_sum_pool"))


def global_smooth_max_pool(
    x: Tensor,
    *,
    beta: float,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
) -> Tensor:
    """The smooth maximum of all cells of the last `spatial_dims` axes, or of the ones that `axes` names.

    >>> import torch, cenote.torch
    >>> cenote.torch.global_smooth_max_pool(torch.tensor([[1.0, 5], [7, 7]]), spatial_dims=1, keepdims=False, beta=10.0)
    tensor([5.0000, 7.0693])
    """
    windows = (GLOBAL, spatial_dims, axes, keepdims)
    return pool(x, ((SMOOTH_MAX, beta, "zeros"), windows, "global_smooth_max_pool"))


def global_lp_pool(
    x: Tensor,
    *,
    p: float,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
) -> Tensor:
    """The p-norm of all cells of the last `spatial_dims` axes, or of the ones that `axes` names.

    >>> import torch, cenote.torch
    >>> cenote.torch.global_lp_pool(torch.tensor([[1.0, 5], [7, 7]]), spatial_dims=1, keepdims=False, p=1)
    tensor([ 6., 14.])
    """
    windows = (GLOBAL, spatial_dims, axes, keepdims)
    return pool(x, ((LP, p), windows, "global_lp_pool"))
