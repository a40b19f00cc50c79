"""Windows that slide, on jax arrays. The arguments are those of the numpy functions, which describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

import jax

from .._tags import AVERAGE, LP, MAX, MIN, SLIDING, SMOOTH_MAX, SUM
from ._calls import derivatives_of, pool, selected

if TYPE_CHECKING:
    from .._types import Ints, Padding


@overload
def max_pool(
    x: jax.Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: Literal[False] = False,
) -> jax.Array: ...


@overload
def max_pool(
    x: jax.Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: Literal[True],
) -> tuple[jax.Array, jax.Array]: ...


def max_pool(
    x: jax.Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: bool = False,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """The largest cell of each window: `cenote.max_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.array([[1.0, 5, 2, 0], [4, 3, 8, 6], [7, 9, 1, 1], [0, 2, 3, 4]])
    >>> cenote.jax.max_pool(x, (2, 2))
    Array([[5., 8.],
           [9., 4.]], dtype=float32)
    >>> cenote.jax.max_pool(x, (2, 2), return_indices=True)[1]
    Array([[ 1,  6],
           [ 9, 15]], dtype=int32)
    """
    return selected((MAX, ties), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, "max_pool", return_indices)


@overload
def min_pool(
    x: jax.Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: Literal[False] = False,
) -> jax.Array: ...


@overload
def min_pool(
    x: jax.Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: Literal[True],
) -> tuple[jax.Array, jax.Array]: ...


def min_pool(
    x: jax.Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: bool = False,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """The smallest cell of each window: `cenote.min_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.min_pool(jnp.array([1.0, 5, 2, 0]), (2,))
    Array([1., 0.], dtype=float32)
    """
    return selected((MIN, ties), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, "min_pool", return_indices)


def avg_pool(
    x: jax.Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    axes: Ints | None = None,
) -> jax.Array:
    """The mean of each window: `cenote.avg_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.avg_pool(jnp.array([1.0, 5, 2, 0]), (2,), padding=1)
    Array([0.5, 3.5, 0. ], dtype=float32)
    """
    return pool((AVERAGE, count_include_pad, divisor_override), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, "avg_pool")


def sum_pool(
    x: jax.Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
) -> jax.Array:
    """The sum of each window: `cenote.sum_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.sum_pool(jnp.array([1.0, 5, 2, 0]), (2,))
    Array([6., 2.], dtype=float32)
    """
    return pool((SUM,), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, "sum_pool")


def smooth_max_pool(
    x: jax.Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    beta: float,
    ceil_mode: bool = False,
    padding_mode: str = "zeros",
    axes: Ints | None = None,
) -> jax.Array:
    """log(sum(exp(beta * x))) / beta over each window: `cenote.smooth_max_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.smooth_max_pool(jnp.array([1.0, 5, 2, 0]), (2,), beta=1.0).round(4)
    Array([5.0182, 2.1269], dtype=float32)
    """
    return pool((SMOOTH_MAX, beta, padding_mode), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, "smooth_max_pool")


def lp_pool(
    x: jax.Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    p: float,
    ceil_mode: bool = False,
    axes: Ints | None = None,
) -> jax.Array:
    """(sum |x|^p)^(1/p) over each window: `cenote.lp_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.lp_pool(jnp.array([3.0, 4, 0, 0]), (2,), p=2)
    Array([5., 0.], dtype=float32)
    """
    return pool((LP, p), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, "lp_pool")


max_pool_jvp, max_pool_vjp = derivatives_of(max_pool, "(2,)")
min_pool_jvp, min_pool_vjp = derivatives_of(min_pool, "(2,)")
avg_pool_jvp, avg_pool_vjp = derivatives_of(avg_pool, "(2,)")
sum_pool_jvp, sum_pool_vjp = derivatives_of(sum_pool, "(2,)")
smooth_max_pool_jvp, smooth_max_pool_vjp = derivatives_of(smooth_max_pool, "(2,), beta=1.0")
lp_pool_jvp, lp_pool_vjp = derivatives_of(lp_pool, "(2,), p=2")
