"""One window over everything: global_max_pool and its relatives, with their derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _core
from ._tags import AVERAGE, GLOBAL, LP, MAX, MIN, SMOOTH_MAX, SUM

if TYPE_CHECKING:
    from ._types import Array, ArrayOrShape, Ints, Result

_forward, _jvp, _vjp = _core.forward, _core.jvp, _core.vjp


def global_max_pool(
    x: Array,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    ties: str = "all",
    out: Result | None = None,
) -> Result:
    """The largest cell.

    The window is all of the last `spatial_dims` axes, or of the ones that `axes` names. They stay behind with size 1, or are
    dropped (`keepdims=False`).

    `ties` says which of several equal cells receives the gradient: "all" of them in full, the "first", or "split" evenly.

    >>> import numpy as np, cenote
    >>> cenote.global_max_pool(np.array([[1.0, 5], [7, 7]]), spatial_dims=1, keepdims=False)
    array([5., 7.])
    """
    return _forward((MAX, ties), (GLOBAL, spatial_dims, axes, keepdims), x, out, "global_max_pool")


def global_max_pool_jvp(
    x: Array,
    dx: Array,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    ties: str = "all",
    out: Result | None = None,
) -> Result:
    """The derivative of `global_max_pool` at `x`, applied to `dx`.

    >>> import numpy as np, cenote
    >>> cenote.global_max_pool_jvp(np.array([[1.0, 5], [7, 7]]), np.array([[1.0, 2], [3, 4]]), spatial_dims=1)
    array([[2.],
           [7.]])
    """
    return _jvp((MAX, ties), (GLOBAL, spatial_dims, axes, keepdims), x, dx, out, "global_max_pool_jvp")


def global_max_pool_vjp(
    x: Array,
    gy: Array,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    ties: str = "all",
    out: Result | None = None,
) -> Result:
    """The gradient of `global_max_pool` by `x`.

    >>> import numpy as np, cenote
    >>> cenote.global_max_pool_vjp(np.array([[1.0, 5], [7, 7]]), np.array([[1.0], [10]]), spatial_dims=1)
    array([[ 0.,  1.],
           [10., 10.]])
    """
    return _vjp((MAX, ties), (GLOBAL, spatial_dims, axes, keepdims), x, gy, out, "global_max_pool_vjp")


def global_min_pool(
    x: Array,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    ties: str = "all",
    out: Result | None = None,
) -> Result:
    """The smallest cell.

    The window is all of the last `spatial_dims` axes, or of the ones that `axes` names. They stay behind with size 1, or are
    dropped (`keepdims=False`).

    `ties` says which of several equal cells receives the gradient: "all" of them in full, the "first", or "split" evenly.

    >>> import numpy as np, cenote
    >>> cenote.global_min_pool(np.array([[1.0, 5], [7, 7]]), spatial_dims=1, keepdims=False)
    array([1., 7.])
    """
    return _forward((MIN, ties), (GLOBAL, spatial_dims, axes, keepdims), x, out, "global_min_pool")


def global_min_pool_jvp(
    x: Array,
    dx: Array,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    ties: str = "all",
    out: Result | None = None,
) -> Result:
    """The derivative of `global_min_pool` at `x`, applied to `dx`.

    >>> import numpy as np, cenote
    >>> cenote.global_min_pool_jvp(np.array([[1.0, 5], [7, 7]]), np.array([[1.0, 2], [3, 4]]), spatial_dims=1)
    array([[1.],
           [7.]])
    """
    return _jvp((MIN, ties), (GLOBAL, spatial_dims, axes, keepdims), x, dx, out, "global_min_pool_jvp")


def global_min_pool_vjp(
    x: Array,
    gy: Array,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    ties: str = "all",
    out: Result | None = None,
) -> Result:
    """The gradient of `global_min_pool` by `x`.

    >>> import numpy as np, cenote
    >>> cenote.global_min_pool_vjp(np.array([[1.0, 5], [7, 7]]), np.array([[1.0], [10]]), spatial_dims=1)
    array([[ 1.,  0.],
           [10., 10.]])
    """
    return _vjp((MIN, ties), (GLOBAL, spatial_dims, axes, keepdims), x, gy, out, "global_min_pool_vjp")


def global_avg_pool(
    x: Array,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    out: Result | None = None,
) -> Result:
    """The mean of all cells.

    The window is all of the last `spatial_dims` axes, or of the ones that `axes` names. They stay behind with size 1, or are
    dropped (`keepdims=False`).

    >>> import numpy as np, cenote
    >>> cenote.global_avg_pool(np.array([[1.0, 5], [7, 7]]), spatial_dims=1, keepdims=False)
    array([3., 7.])
    """
    return _forward((AVERAGE, True, None), (GLOBAL, spatial_dims, axes, keepdims), x, out, "global_avg_pool")


def global_avg_pool_jvp(
    x: ArrayOrShape,
    dx: Array,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    out: Result | None = None,
) -> Result:
    """The derivative of `global_avg_pool`, applied to `dx`. `x` may be a shape: its values do not matter.

    >>> import numpy as np, cenote
    >>> cenote.global_avg_pool_jvp((2, 2), np.array([[1.0, 2], [3, 4]]), spatial_dims=1)
    array([[1.5],
           [3.5]])
    """
    return _jvp((AVERAGE, True, None), (GLOBAL, spatial_dims, axes, keepdims), x, dx, out, "global_avg_pool_jvp")


def global_avg_pool_vjp(
    x: ArrayOrShape,
    gy: Array,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    out: Result | None = None,
) -> Result:
    """The gradient of `global_avg_pool` by `x`, which may be a shape: its values do not matter.

    >>> import numpy as np, cenote
    >>> cenote.global_avg_pool_vjp((2, 2), np.array([[1.0], [10]]), spatial_dims=1)
    array([[0.5, 0.5],
           [5. , 5. ]])
    """
    return _vjp((AVERAGE, True, None), (GLOBAL, spatial_dims, axes, keepdims), x, gy, out, "global_avg_pool_vjp")


def global_sum_pool(
    x: Array,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    out: Result | None = None,
) -> Result:
    """The sum of all cells.

    The window is all of the last `spatial_dims` axes, or of the ones that `axes` names. They stay behind with size 1, or are
    dropped (`keepdims=False`).

    >>> import numpy as np, cenote
    >>> cenote.global_sum_pool(np.array([[1.0, 5], [7, 7]]), spatial_dims=1, keepdims=False)
    array([ 6., 14.])
    """
    return _forward((SUM,), (GLOBAL, spatial_dims, axes, keepdims), x, out, "global_sum_pool")


def global_sum_pool_jvp(
    x: ArrayOrShape,
    dx: Array,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    out: Result | None = None,
) -> Result:
    """The derivative of `global_sum_pool`, applied to `dx`. `x` may be a shape: its values do not matter.

    >>> import numpy as np, cenote
    >>> cenote.global_sum_pool_jvp((2, 2), np.array([[1.0, 2], [3, 4]]), spatial_dims=1)
    array([[3.],
           [7.]])
    """
    return _jvp((SUM,), (GLOBAL, spatial_dims, axes, keepdims), x, dx, out, "global_sum_pool_jvp")


def global_sum_pool_vjp(
    x: ArrayOrShape,
    gy: Array,
    *,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    out: Result | None = None,
) -> Result:
    """The gradient of `global_sum_pool` by `x`, which may be a shape: its values do not matter.

    >>> import numpy as np, cenote
    >>> cenote.global_sum_pool_vjp((2, 2), np.array([[1.0], [10]]), spatial_dims=1)
    array([[ 1.,  1.],
           [10., 10.]])
    """
    return _vjp((SUM,), (GLOBAL, spatial_dims, axes, keepdims), x, gy, out, "global_sum_pool_vjp")


def global_smooth_max_pool(
    x: Array,
    *,
    beta: float,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    out: Result | None = None,
) -> Result:
    """The smooth maximum of all cells.

    The window is all of the last `spatial_dims` axes, or of the ones that `axes` names. They stay behind with size 1, or are
    dropped (`keepdims=False`).

    >>> import numpy as np, cenote
    >>> cenote.global_smooth_max_pool(np.array([[1.0, 5], [7, 7]]), beta=1.0, spatial_dims=1, keepdims=False).round(6)
    array([5.01815 , 7.693147])
    """
    return _forward((SMOOTH_MAX, beta, "zeros"), (GLOBAL, spatial_dims, axes, keepdims), x, out, "global_smooth_max_pool")


def global_smooth_max_pool_jvp(
    x: Array,
    dx: Array,
    *,
    beta: float,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    out: Result | None = None,
) -> Result:
    """The derivative of `global_smooth_max_pool` at `x`, applied to `dx`.

    >>> import numpy as np, cenote
    >>> cenote.global_smooth_max_pool_jvp(np.array([[1.0, 5], [7, 7]]), np.array([[1.0, 2], [3, 4]]), beta=1.0, spatial_dims=1).round(6)
    array([[1.982014],
           [3.5     ]])
    """
    return _jvp((SMOOTH_MAX, beta, "zeros"), (GLOBAL, spatial_dims, axes, keepdims), x, dx, out, "global_smooth_max_pool_jvp")


def global_smooth_max_pool_vjp(
    x: Array,
    gy: Array,
    *,
    beta: float,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    out: Result | None = None,
) -> Result:
    """The gradient of `global_smooth_max_pool` by `x`.

    >>> import numpy as np, cenote
    >>> cenote.global_smooth_max_pool_vjp(np.array([[1.0, 5], [7, 7]]), np.array([[1.0], [10]]), beta=1.0, spatial_dims=1).round(6)
    array([[0.017986, 0.982014],
           [5.      , 5.      ]])
    """
    return _vjp((SMOOTH_MAX, beta, "zeros"), (GLOBAL, spatial_dims, axes, keepdims), x, gy, out, "global_smooth_max_pool_vjp")


def global_lp_pool(
    x: Array,
    *,
    p: float,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    out: Result | None = None,
) -> Result:
    """The p-norm of all cells.

    The window is all of the last `spatial_dims` axes, or of the ones that `axes` names. They stay behind with size 1, or are
    dropped (`keepdims=False`).

    >>> import numpy as np, cenote
    >>> cenote.global_lp_pool(np.array([[1.0, 5], [7, 7]]), p=2, spatial_dims=1, keepdims=False).round(6)
    array([5.09902 , 9.899495])
    """
    return _forward((LP, p), (GLOBAL, spatial_dims, axes, keepdims), x, out, "global_lp_pool")


def global_lp_pool_jvp(
    x: Array,
    dx: Array,
    *,
    p: float,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    out: Result | None = None,
) -> Result:
    """The derivative of `global_lp_pool` at `x`, applied to `dx`.

    >>> import numpy as np, cenote
    >>> cenote.global_lp_pool_jvp(np.array([[1.0, 5], [7, 7]]), np.array([[1.0, 2], [3, 4]]), p=2, spatial_dims=1).round(6)
    array([[2.157277],
           [4.949747]])
    """
    return _jvp((LP, p), (GLOBAL, spatial_dims, axes, keepdims), x, dx, out, "global_lp_pool_jvp")


def global_lp_pool_vjp(
    x: Array,
    gy: Array,
    *,
    p: float,
    spatial_dims: int | None = None,
    axes: Ints | None = None,
    keepdims: bool = True,
    out: Result | None = None,
) -> Result:
    """The gradient of `global_lp_pool` by `x`.

    >>> import numpy as np, cenote
    >>> cenote.global_lp_pool_vjp(np.array([[1.0, 5], [7, 7]]), np.array([[1.0], [10]]), p=2, spatial_dims=1).round(6)
    array([[0.196116, 0.980581],
           [7.071068, 7.071068]])
    """
    return _vjp((LP, p), (GLOBAL, spatial_dims, axes, keepdims), x, gy, out, "global_lp_pool_vjp")
