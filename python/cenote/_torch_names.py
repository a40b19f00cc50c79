"""PyTorch's names with PyTorch's signatures, defaults and bound on the padding, on numpy arrays.

Inputs are (C, spatial...) or (N, C, spatial...). Padding is symmetric and at most half the effective kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

from . import _core
from ._tags import AVERAGE, MAX, TORCH_ADAPTIVE, TORCH_LP, TORCH_SLIDING

if TYPE_CHECKING:
    from ._types import Array, Indices, Ints, Result

    OutputSize = Union[int, None, Sequence[Union[int, None]]]
    MaybeIndices = Union[Result, tuple[Result, Indices]]

_forward, _forward_and_indices = _core.forward, _core.forward_and_indices


def max_pool1d(
    input: Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaybeIndices:
    """`torch.nn.functional.max_pool1d`.

    >>> import numpy as np, cenote
    >>> x = np.arange(8.0).reshape(1, 1, 8)
    >>> cenote.max_pool1d(x, 2).shape
    (1, 1, 4)
    """
    windows = (TORCH_SLIDING, 1, kernel_size, stride, padding, dilation, ceil_mode)
    if return_indices:
        return _forward_and_indices((MAX, "first"), windows, input, None, "max_pool1d")
    return _forward((MAX, "first"), windows, input, None, "max_pool1d")


def avg_pool1d(
    input: Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Result:
    """`torch.nn.functional.avg_pool1d`.

    >>> import numpy as np, cenote
    >>> x = np.arange(8.0).reshape(1, 1, 8)
    >>> cenote.avg_pool1d(x, 2)
    array([[[0.5, 2.5, 4.5, 6.5]]])
    """
    windows = (TORCH_SLIDING, 1, kernel_size, stride, padding, 1, ceil_mode)
    return _forward((AVERAGE, count_include_pad, None), windows, input, None, "avg_pool1d")


def lp_pool1d(
    input: Array,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Result:
    """`torch.nn.functional.lp_pool1d`, with |x|**p also where p is odd, and no factor for windows cut by ceil rounding.

    >>> import numpy as np, cenote
    >>> x = np.arange(8.0).reshape(1, 1, 8)
    >>> cenote.lp_pool1d(x, 1, 2)
    array([[[ 1.,  5.,  9., 13.]]])
    """
    windows = (TORCH_SLIDING, 1, kernel_size, stride, 0, 1, ceil_mode)
    return _forward((TORCH_LP, norm_type), windows, input, None, "lp_pool1d")


def adaptive_max_pool1d(input: Array, output_size: OutputSize, return_indices: bool = False) -> MaybeIndices:
    """`torch.nn.functional.adaptive_max_pool1d`; None keeps an axis as it is.

    >>> import numpy as np, cenote
    >>> x = np.arange(8.0).reshape(1, 1, 8)
    >>> cenote.adaptive_max_pool1d(x, 1)
    array([[[7.]]])
    """
    windows = (TORCH_ADAPTIVE, 1, output_size)
    if return_indices:
        return _forward_and_indices((MAX, "first"), windows, input, None, "adaptive_max_pool1d")
    return _forward((MAX, "first"), windows, input, None, "adaptive_max_pool1d")


def adaptive_avg_pool1d(input: Array, output_size: OutputSize) -> Result:
    """`torch.nn.functional.adaptive_avg_pool1d`; None keeps an axis as it is.

    >>> import numpy as np, cenote
    >>> x = np.arange(8.0).reshape(1, 1, 8)
    >>> cenote.adaptive_avg_pool1d(x, 1)
    array([[[3.5]]])
    """
    return _forward((AVERAGE, True, None), (TORCH_ADAPTIVE, 1, output_size), input, None, "adaptive_avg_pool1d")


def max_pool2d(
    input: Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaybeIndices:
    """`torch.nn.functional.max_pool2d`.

    >>> import numpy as np, cenote
    >>> x = np.arange(16.0).reshape(1, 1, 4, 4)
    >>> cenote.max_pool2d(x, 2).shape
    (1, 1, 2, 2)
    """
    windows = (TORCH_SLIDING, 2, kernel_size, stride, padding, dilation, ceil_mode)
    if return_indices:
        return _forward_and_indices((MAX, "first"), windows, input, None, "max_pool2d")
    return _forward((MAX, "first"), windows, input, None, "max_pool2d")


def avg_pool2d(
    input: Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Result:
    """`torch.nn.functional.avg_pool2d`.

    >>> import numpy as np, cenote
    >>> x = np.arange(16.0).reshape(1, 1, 4, 4)
    >>> cenote.avg_pool2d(x, 2)
    array([[[[ 2.5,  4.5],
             [10.5, 12.5]]]])
    """
    windows = (TORCH_SLIDING, 2, kernel_size, stride, padding, 1, ceil_mode)
    return _forward((AVERAGE, count_include_pad, divisor_override), windows, input, None, "avg_pool2d")


def lp_pool2d(
    input: Array,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Result:
    """`torch.nn.functional.lp_pool2d`, with |x|**p also where p is odd, and no factor for windows cut by ceil rounding.

    >>> import numpy as np, cenote
    >>> x = np.arange(16.0).reshape(1, 1, 4, 4)
    >>> cenote.lp_pool2d(x, 1, 2)
    array([[[[10., 18.],
             [42., 50.]]]])
    """
    windows = (TORCH_SLIDING, 2, kernel_size, stride, 0, 1, ceil_mode)
    return _forward((TORCH_LP, norm_type), windows, input, None, "lp_pool2d")


def adaptive_max_pool2d(input: Array, output_size: OutputSize, return_indices: bool = False) -> MaybeIndices:
    """`torch.nn.functional.adaptive_max_pool2d`; None keeps an axis as it is.

    >>> import numpy as np, cenote
    >>> x = np.arange(16.0).reshape(1, 1, 4, 4)
    >>> cenote.adaptive_max_pool2d(x, 1)
    array([[[[15.]]]])
    """
    windows = (TORCH_ADAPTIVE, 2, output_size)
    if return_indices:
        return _forward_and_indices((MAX, "first"), windows, input, None, "adaptive_max_pool2d")
    return _forward((MAX, "first"), windows, input, None, "adaptive_max_pool2d")


def adaptive_avg_pool2d(input: Array, output_size: OutputSize) -> Result:
    """`torch.nn.functional.adaptive_avg_pool2d`; None keeps an axis as it is.

    >>> import numpy as np, cenote
    >>> x = np.arange(16.0).reshape(1, 1, 4, 4)
    >>> cenote.adaptive_avg_pool2d(x, 1)
    array([[[[7.5]]]])
    """
    return _forward((AVERAGE, True, None), (TORCH_ADAPTIVE, 2, output_size), input, None, "adaptive_avg_pool2d")


def max_pool3d(
    input: Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaybeIndices:
    """`torch.nn.functional.max_pool3d`.

    >>> import numpy as np, cenote
    >>> x = np.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> cenote.max_pool3d(x, 2).shape
    (1, 1, 1, 1, 1)
    """
    windows = (TORCH_SLIDING, 3, kernel_size, stride, padding, dilation, ceil_mode)
    if return_indices:
        return _forward_and_indices((MAX, "first"), windows, input, None, "max_pool3d")
    return _forward((MAX, "first"), windows, input, None, "max_pool3d")


def avg_pool3d(
    input: Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Result:
    """`torch.nn.functional.avg_pool3d`.

    >>> import numpy as np, cenote
    >>> x = np.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> cenote.avg_pool3d(x, 2)
    array([[[[[3.5]]]]])
    """
    windows = (TORCH_SLIDING, 3, kernel_size, stride, padding, 1, ceil_mode)
    return _forward((AVERAGE, count_include_pad, divisor_override), windows, input, None, "avg_pool3d")


def lp_pool3d(
    input: Array,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Result:
    """`torch.nn.functional.lp_pool3d`, with |x|**p also where p is odd, and no factor for windows cut by ceil rounding.

    >>> import numpy as np, cenote
    >>> x = np.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> cenote.lp_pool3d(x, 1, 2)
    array([[[[[28.]]]]])
    """
    windows = (TORCH_SLIDING, 3, kernel_size, stride, 0, 1, ceil_mode)
    return _forward((TORCH_LP, norm_type), windows, input, None, "lp_pool3d")


def adaptive_max_pool3d(input: Array, output_size: OutputSize, return_indices: bool = False) -> MaybeIndices:
    """`torch.nn.functional.adaptive_max_pool3d`; None keeps an axis as it is.

    >>> import numpy as np, cenote
    >>> x = np.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> cenote.adaptive_max_pool3d(x, 1)
    array([[[[[7.]]]]])
    """
    windows = (TORCH_ADAPTIVE, 3, output_size)
    if return_indices:
        return _forward_and_indices((MAX, "first"), windows, input, None, "adaptive_max_pool3d")
    return _forward((MAX, "first"), windows, input, None, "adaptive_max_pool3d")


def adaptive_avg_pool3d(input: Array, output_size: OutputSize) -> Result:
    """`torch.nn.functional.adaptive_avg_pool3d`; None keeps an axis as it is.

    >>> import numpy as np, cenote
    >>> x = np.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> cenote.adaptive_avg_pool3d(x, 1)
    array([[[[[3.5]]]]])
    """
    return _forward((AVERAGE, True, None), (TORCH_ADAPTIVE, 3, output_size), input, None, "adaptive_avg_pool3d")
