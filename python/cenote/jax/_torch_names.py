"""PyTorch's names with PyTorch's signatures, defaults and bound on the padding, on jax arrays.

Inputs are (C, spatial...) or (N, C, spatial...). Padding is symmetric and at most half the effective kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

import jax

from .._tags import AVERAGE, MAX, TORCH_ADAPTIVE, TORCH_LP, TORCH_SLIDING
from ._calls import pool, selected

if TYPE_CHECKING:
    from .._types import Ints

    OutputSize = Union[int, None, Sequence[Union[int, None]]]
    MaybeIndices = Union[jax.Array, tuple[jax.Array, jax.Array]]


def max_pool1d(
    input: jax.Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaybeIndices:
    """`torch.nn.functional.max_pool1d`.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.arange(8.0).reshape(1, 1, 8)
    >>> cenote.jax.max_pool1d(x, 2).shape
    (1, 1, 4)
    """
    windows = (TORCH_SLIDING, 1, kernel_size, stride, padding, dilation, ceil_mode)
    return selected((MAX, "first"), windows, input, "max_pool1d", return_indices)


def avg_pool1d(
    input: jax.Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> jax.Array:
    """`torch.nn.functional.avg_pool1d`.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.arange(8.0).reshape(1, 1, 8)
    >>> cenote.jax.avg_pool1d(x, 2)
    Array([[[0.5, 2.5, 4.5, 6.5]]], dtype=float32)
    """
    windows = (TORCH_SLIDING, 1, kernel_size, stride, padding, 1, ceil_mode)
    return pool((AVERAGE, count_include_pad, None), windows, input, "avg_pool1d")


def lp_pool1d(
    input: jax.Array,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> jax.Array:
    """`torch.nn.functional.lp_pool1d`, with |x|**p also where p is odd, and no factor for windows cut by ceil rounding.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.arange(8.0).reshape(1, 1, 8)
    >>> cenote.jax.lp_pool1d(x, 1, 2)
    Array([[[ 1.,  5.,  9., 13.]]], dtype=float32)
    """
    windows = (TORCH_SLIDING, 1, kernel_size, stride, 0, 1, ceil_mode)
    return pool((TORCH_LP, norm_type), windows, input, "lp_pool1d")


def adaptive_max_pool1d(input: jax.Array, output_size: OutputSize, return_indices: bool = False) -> MaybeIndices:
    """`torch.nn.functional.adaptive_max_pool1d`; None keeps an axis as it is.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.arange(8.0).reshape(1, 1, 8)
    >>> cenote.jax.adaptive_max_pool1d(x, 1)
    Array([[[7.]]], dtype=float32)
    """
    windows = (TORCH_ADAPTIVE, 1, output_size)
    return selected((MAX, "first"), windows, input, "adaptive_max_pool1d", return_indices)


def adaptive_avg_pool1d(input: jax.Array, output_size: OutputSize) -> jax.Array:
    """`torch.nn.functional.adaptive_avg_pool1d`; None keeps an axis as it is.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.arange(8.0).reshape(1, 1, 8)
    >>> cenote.jax.adaptive_avg_pool1d(x, 1)
    Array([[[3.5]]], dtype=float32)
    """
    return pool((AVERAGE, True, None), (TORCH_ADAPTIVE, 1, output_size), input, "adaptive_avg_pool1d")


def max_pool2d(
    input: jax.Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaybeIndices:
    """`torch.nn.functional.max_pool2d`.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.arange(16.0).reshape(1, 1, 4, 4)
    >>> cenote.jax.max_pool2d(x, 2).shape
    (1, 1, 2, 2)
    """
    windows = (TORCH_SLIDING, 2, kernel_size, stride, padding, dilation, ceil_mode)
    return selected((MAX, "first"), windows, input, "max_pool2d", return_indices)


def avg_pool2d(
    input: jax.Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> jax.Array:
    """`torch.nn.functional.avg_pool2d`.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.arange(16.0).reshape(1, 1, 4, 4)
    >>> cenote.jax.avg_pool2d(x, 2)
    Array([[[[ 2.5,  4.5],
             [10.5, 12.5]]]], dtype=float32)
    """
    windows = (TORCH_SLIDING, 2, kernel_size, stride, padding, 1, ceil_mode)
    return pool((AVERAGE, count_include_pad, divisor_override), windows, input, "avg_pool2d")


def lp_pool2d(
    input: jax.Array,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> jax.Array:
    """`torch.nn.functional.lp_pool2d`, with |x|**p also where p is odd, and no factor for windows cut by ceil rounding.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.arange(16.0).reshape(1, 1, 4, 4)
    >>> cenote.jax.lp_pool2d(x, 1, 2)
    Array([[[[10., 18.],
             [42., 50.]]]], dtype=float32)
    """
    windows = (TORCH_SLIDING, 2, kernel_size, stride, 0, 1, ceil_mode)
    return pool((TORCH_LP, norm_type), windows, input, "lp_pool2d")


def adaptive_max_pool2d(input: jax.Array, output_size: OutputSize, return_indices: bool = False) -> MaybeIndices:
    """`torch.nn.functional.adaptive_max_pool2d`; None keeps an axis as it is.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.arange(16.0).reshape(1, 1, 4, 4)
    >>> cenote.jax.adaptive_max_pool2d(x, 1)
    Array([[[[15.]]]], dtype=float32)
    """
    windows = (TORCH_ADAPTIVE, 2, output_size)
    return selected((MAX, "first"), windows, input, "adaptive_max_pool2d", return_indices)


def adaptive_avg_pool2d(input: jax.Array, output_size: OutputSize) -> jax.Array:
    """`torch.nn.functional.adaptive_avg_pool2d`; None keeps an axis as it is.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.arange(16.0).reshape(1, 1, 4, 4)
    >>> cenote.jax.adaptive_avg_pool2d(x, 1)
    Array([[[[7.5]]]], dtype=float32)
    """
    return pool((AVERAGE, True, None), (TORCH_ADAPTIVE, 2, output_size), input, "adaptive_avg_pool2d")


def max_pool3d(
    input: jax.Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> MaybeIndices:
    """`torch.nn.functional.max_pool3d`.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> cenote.jax.max_pool3d(x, 2).shape
    (1, 1, 1, 1, 1)
    """
    windows = (TORCH_SLIDING, 3, kernel_size, stride, padding, dilation, ceil_mode)
    return selected((MAX, "first"), windows, input, "max_pool3d", return_indices)


def avg_pool3d(
    input: jax.Array,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> jax.Array:
    """`torch.nn.functional.avg_pool3d`.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> cenote.jax.avg_pool3d(x, 2)
    Array([[[[[3.5]]]]], dtype=float32)
    """
    windows = (TORCH_SLIDING, 3, kernel_size, stride, padding, 1, ceil_mode)
    return pool((AVERAGE, count_include_pad, divisor_override), windows, input, "avg_pool3d")


def lp_pool3d(
    input: jax.Array,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> jax.Array:
    """`torch.nn.functional.lp_pool3d`, with |x|**p also where p is odd, and no factor for windows cut by ceil rounding.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> cenote.jax.lp_pool3d(x, 1, 2)
    Array([[[[[28.]]]]], dtype=float32)
    """
    windows = (TORCH_SLIDING, 3, kernel_size, stride, 0, 1, ceil_mode)
    return pool((TORCH_LP, norm_type), windows, input, "lp_pool3d")


def adaptive_max_pool3d(input: jax.Array, output_size: OutputSize, return_indices: bool = False) -> MaybeIndices:
    """`torch.nn.functional.adaptive_max_pool3d`; None keeps an axis as it is.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> cenote.jax.adaptive_max_pool3d(x, 1)
    Array([[[[[7.]]]]], dtype=float32)
    """
    windows = (TORCH_ADAPTIVE, 3, output_size)
    return selected((MAX, "first"), windows, input, "adaptive_max_pool3d", return_indices)


def adaptive_avg_pool3d(input: jax.Array, output_size: OutputSize) -> jax.Array:
    """`torch.nn.functional.adaptive_avg_pool3d`; None keeps an axis as it is.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.arange(8.0).reshape(1, 1, 2, 2, 2)
    >>> cenote.jax.adaptive_avg_pool3d(x, 1)
    Array([[[[[3.5]]]]], dtype=float32)
    """
    return pool((AVERAGE, True, None), (TORCH_ADAPTIVE, 3, output_size), input, "adaptive_avg_pool3d")
