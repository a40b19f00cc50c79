"""One window over everything, on jax arrays; arguments as of the numpy functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax

from .._tags import AVERAGE, GLOBAL, LP, MAX, MIN, SMOOTH_MAX, SUM
from ._calls import derivatives_of, pool

if TYPE_CHECKING:
    from .._types import Ints


def global_max_pool(
    x: jax.Array,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    ties: str = "all",
) -> jax.Array:
    """The largest cell: `cenote.global_max_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.global_max_pool(jnp.array([[1.0, 5], [7, 7]]), spatial_dims=1)
    Array([[5.],
           [7.]], dtype=float32)
    """
    return pool((MAX, ties), (GLOBAL, spatial_dims, axes, keepdims), x, "global_max_pool")


def global_min_pool(
    x: jax.Array,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    ties: str = "all",
) -> jax.Array:
    """The smallest cell: `cenote.global_min_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.global_min_pool(jnp.array([[1.0, 5], [7, 7]]), axes=(1,), keepdims=False)
    Array([1., 7.], dtype=float32)
    """
    return pool((MIN, ties), (GLOBAL, spatial_dims, axes, keepdims), x, "global_min_pool")


def global_avg_pool(
    x: jax.Array,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
) -> jax.Array:
    """The mean: `cenote.global_avg_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.global_avg_pool(jnp.array([[1.0, 5], [7, 7]]), spatial_dims=1, keepdims=False)
    Array([3., 7.], dtype=float32)
    """
    return pool((AVERAGE, True, None), (GLOBAL, spatial_dims, axes, keepdims), x, "global_avg_pool")


def global_sum_pool(
    x: jax.Array,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
) -> jax.Array:
    """The sum: `cenote.global_sum_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.global_sum_pool(jnp.array([[1.0, 5], [7, 7]]), spatial_dims=2, keepdims=False)
    Array(20., dtype=float32)
    """
    return pool((SUM,), (GLOBAL, spatial_dims, axes, keepdims), x, "global_sum_pool")


def global_smooth_max_pool(
    x: jax.Array,
    *,
    beta: float,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
) -> jax.Array:
    """log(sum(exp(beta * x))) / beta over everything: `cenote.global_smooth_max_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.global_smooth_max_pool(jnp.array([[1.0, 5], [7, 7]]), spatial_dims=1, keepdims=False, beta=1.0).round(4)
    Array([5.0182, 7.6931], dtype=float32)
    """
    return pool((SMOOTH_MAX, beta, "zeros"), (GLOBAL, spatial_dims, axes, keepdims), x, "global_smooth_max_pool")


def global_lp_pool(
    x: jax.Array,
    *,
    p: float,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
) -> jax.Array:
    """(sum |x|^p)^(1/p) over everything: `cenote.global_lp_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.global_lp_pool(jnp.array([[3.0, 4], [0, 0]]), spatial_dims=1, keepdims=False, p=2)
    Array([5., 0.], dtype=float32)
    """
    return pool((LP, p), (GLOBAL, spatial_dims, axes, keepdims), x, "global_lp_pool")


global_max_pool_jvp, global_max_pool_vjp = derivatives_of(global_max_pool, "spatial_dims=1")
global_min_pool_jvp, global_min_pool_vjp = derivatives_of(global_min_pool, "spatial_dims=1")
global_avg_pool_jvp, global_avg_pool_vjp = derivatives_of(global_avg_pool, "spatial_dims=1")
global_sum_pool_jvp, global_sum_pool_vjp = derivatives_of(global_sum_pool, "spatial_dims=1")
global_smooth_max_pool_jvp, global_smooth_max_pool_vjp = derivatives_of(global_smooth_max_pool, "spatial_dims=1, beta=1.0")
global_lp_pool_jvp, global_lp_pool_vjp = derivatives_of(global_lp_pool, "spatial_dims=1, p=2")
