"""Windows that divide each axis into nearly equal parts, on jax arrays; arguments as of the numpy functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

import jax

from .._tags import ADAPTIVE, AVERAGE, LP, MAX, MIN, SMOOTH_MAX, SUM
from ._calls import derivatives_of, pool, selected

if TYPE_CHECKING:
    from .._types import Ints


@overload
def adaptive_max_pool(
    x: jax.Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: Literal[False] = False,
) -> jax.Array: ...


@overload
def adaptive_max_pool(
    x: jax.Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: Literal[True],
) -> tuple[jax.Array, jax.Array]: ...


def adaptive_max_pool(
    x: jax.Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: bool = False,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """The largest cell of each of `output_size` windows: `cenote.adaptive_max_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.adaptive_max_pool(jnp.array([1.0, 5, 2, 0, 3]), (2,))
    Array([5., 3.], dtype=float32)
    """
    return selected((MAX, ties), (ADAPTIVE, output_size, axes), x, "adaptive_max_pool", return_indices)


@overload
def adaptive_min_pool(
    x: jax.Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: Literal[False] = False,
) -> jax.Array: ...


@overload
def adaptive_min_pool(
    x: jax.Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: Literal[True],
) -> tuple[jax.Array, jax.Array]: ...


def adaptive_min_pool(
    x: jax.Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: bool = False,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """The smallest cell of each of `output_size` windows: `cenote.adaptive_min_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.adaptive_min_pool(jnp.array([1.0, 5, 2, 0, 3]), (2,))
    Array([1., 0.], dtype=float32)
    """
    return selected((MIN, ties), (ADAPTIVE, output_size, axes), x, "adaptive_min_pool", return_indices)


def adaptive_avg_pool(
    x: jax.Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
) -> jax.Array:
    """The mean of each of `output_size` windows: `cenote.adaptive_avg_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.adaptive_avg_pool(jnp.array([1.0, 5, 3, 0, 3]), (2,))
    Array([3., 2.], dtype=float32)
    """
    return pool((AVERAGE, True, None), (ADAPTIVE, output_size, axes), x, "adaptive_avg_pool")


def adaptive_sum_pool(
    x: jax.Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
) -> jax.Array:
    """The sum of each of `output_size` windows: `cenote.adaptive_sum_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.adaptive_sum_pool(jnp.array([1.0, 5, 2, 0, 3]), (2,))
    Array([8., 5.], dtype=float32)
    """
    return pool((SUM,), (ADAPTIVE, output_size, axes), x, "adaptive_sum_pool")


def adaptive_smooth_max_pool(
    x: jax.Array,
    output_size: Ints,
    *,
    beta: float,
    axes: Ints | None = None,
) -> jax.Array:
    """log(sum(exp(beta * x))) / beta over each of `output_size` windows: `cenote.adaptive_smooth_max_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.adaptive_smooth_max_pool(jnp.array([1.0, 5, 2, 0, 3]), (2,), beta=1.0).round(4)
    Array([5.0659, 3.349 ], dtype=float32)
    """
    return pool((SMOOTH_MAX, beta, "zeros"), (ADAPTIVE, output_size, axes), x, "adaptive_smooth_max_pool")


def adaptive_lp_pool(
    x: jax.Array,
    output_size: Ints,
    *,
    p: float,
    axes: Ints | None = None,
) -> jax.Array:
    """(sum |x|^p)^(1/p) over each of `output_size` windows: `cenote.adaptive_lp_pool` for jax.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.adaptive_lp_pool(jnp.array([3.0, 4, 0, 0]), (2,), p=2)
    Array([5., 0.], dtype=float32)
    """
    return pool((LP, p), (ADAPTIVE, output_size, axes), x, "adaptive_lp_pool")


adaptive_max_pool_jvp, adaptive_max_pool_vjp = derivatives_of(adaptive_max_pool, "(2,)")
adaptive_min_pool_jvp, adaptive_min_pool_vjp = derivatives_of(adaptive_min_pool, "(2,)")
adaptive_avg_pool_jvp, adaptive_avg_pool_vjp = derivatives_of(adaptive_avg_pool, "(2,)")
adaptive_sum_pool_jvp, adaptive_sum_pool_vjp = derivatives_of(adaptive_sum_pool, "(2,)")
adaptive_smooth_max_pool_jvp, adaptive_smooth_max_pool_vjp = derivatives_of(adaptive_smooth_max_pool, "(2,), beta=1.0")
adaptive_lp_pool_jvp, adaptive_lp_pool_vjp = derivatives_of(adaptive_lp_pool, "(2,), p=2")
