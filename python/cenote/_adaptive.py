"""Windows that divide each axis into nearly equal parts: adaptive_max_pool and its relatives, with their derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from . import _core
from ._tags import ADAPTIVE, AVERAGE, LP, MAX, MIN, SMOOTH_MAX, SUM

if TYPE_CHECKING:
    from ._types import Array, ArrayOrShape, Indices, Ints, Padding, Result

_forward, _jvp, _vjp = _core.forward, _core.jvp, _core.vjp
_forward_and_indices = _core.forward_and_indices


@overload
def adaptive_max_pool(
    x: Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: Literal[False] = False,
    out: Result | None = None,
) -> Result: ...


@overload
def adaptive_max_pool(
    x: Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: Literal[True],
    out: Result | None = None,
) -> tuple[Result, Indices]: ...


def adaptive_max_pool(
    x: Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: bool = False,
    out: Result | None = None,
) -> Result | tuple[Result, Indices]:
    """The largest cell of each of `output_size` windows.

    The last axes are pooled, as many as `output_size` has entries, or the ones that `axes` names. Window i of m on an axis
    of n cells is floor(i*n/m) to ceil((i+1)*n/m).

    >>> import numpy as np, cenote
    >>> cenote.adaptive_max_pool(np.array([1.0, 5, 2, 0, 3]), (2,))
    array([5., 3.])
    >>> cenote.adaptive_max_pool(np.array([1.0, 5, 2, 0, 3]), (2,), return_indices=True)[1]
    array([1, 4])
    """
    windows = (ADAPTIVE, output_size, axes)
    if return_indices:
        return _forward_and_indices((MAX, ties), windows, x, out, "adaptive_max_pool")
    return _forward((MAX, ties), windows, x, out, "adaptive_max_pool")


def adaptive_max_pool_jvp(
    x: Array,
    dx: Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    ties: str = "first",
    out: Result | None = None,
) -> Result:
    """The derivative of `adaptive_max_pool` at `x`, applied to `dx`.

    >>> import numpy as np, cenote
    >>> cenote.adaptive_max_pool_jvp(np.array([1.0, 5, 2, 0, 3]), np.arange(5.0), (2,))
    array([1., 4.])
    """
    return _jvp((MAX, ties), (ADAPTIVE, output_size, axes), x, dx, out, "adaptive_max_pool_jvp")


def adaptive_max_pool_vjp(
    x: Array,
    gy: Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    ties: str = "first",
    out: Result | None = None,
) -> Result:
    """The gradient of `adaptive_max_pool` by `x`.

    >>> import numpy as np, cenote
    >>> cenote.adaptive_max_pool_vjp(np.array([1.0, 5, 2, 0, 3]), np.array([1.0, 10]), (2,))
    array([ 0.,  1.,  0.,  0., 10.])
    """
    return _vjp((MAX, ties), (ADAPTIVE, output_size, axes), x, gy, out, "adaptive_max_pool_vjp")


@overload
def adaptive_min_pool(
    x: Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: Literal[False] = False,
    out: Result | None = None,
) -> Result: ...


@overload
def adaptive_min_pool(
    x: Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: Literal[True],
    out: Result | None = None,
) -> tuple[Result, Indices]: ...


def adaptive_min_pool(
    x: Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: bool = False,
    out: Result | None = None,
) -> Result | tuple[Result, Indices]:
    """The smallest cell of each of `output_size` windows.

    The last axes are pooled, as many as `output_size` has entries, or the ones that `axes` names. Window i of m on an axis
    of n cells is floor(i*n/m) to ceil((i+1)*n/m).

    >>> import numpy as np, cenote
    >>> cenote.adaptive_min_pool(np.array([1.0, 5, 2, 0, 3]), (2,))
    array([1., 0.])
    >>> cenote.adaptive_min_pool(np.array([1.0, 5, 2, 0, 3]), (2,), return_indices=True)[1]
    array([0, 3])
    """
    windows = (ADAPTIVE, output_size, axes)
    if return_indices:
        return _forward_and_indices((MIN, ties), windows, x, out, "adaptive_min_pool")
    return _forward((MIN, ties), windows, x, out, "adaptive_min_pool")


def adaptive_min_pool_jvp(
    x: Array,
    dx: Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    ties: str = "first",
    out: Result | None = None,
) -> Result:
    """The derivative of `adaptive_min_pool` at `x`, applied to `dx`.

    >>> import numpy as np, cenote
    >>> cenote.adaptive_min_pool_jvp(np.array([1.0, 5, 2, 0, 3]), np.arange(5.0), (2,))
    array([0., 3.])
    """
    return _jvp((MIN, ties), (ADAPTIVE, output_size, axes), x, dx, out, "adaptive_min_pool_jvp")


def adaptive_min_pool_vjp(
    x: Array,
    gy: Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    ties: str = "first",
    out: Result | None = None,
) -> Result:
    """The gradient of `adaptive_min_pool` by `x`.

    >>> import numpy as np, cenote
    >>> cenote.adaptive_min_pool_vjp(np.array([1.0, 5, 2, 0, 3]), np.array([1.0, 10]), (2,))
    array([ 1.,  0.,  0., 10.,  0.])
    """
    return _vjp((MIN, ties), (ADAPTIVE, output_size, axes), x, gy, out, "adaptive_min_pool_vjp")


def adaptive_avg_pool(
    x: Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The mean of each of `output_size` windows.

    The last axes are pooled, as many as `output_size` has entries, or the ones that `axes` names. Window i of m on an axis
    of n cells is floor(i*n/m) to ceil((i+1)*n/m).

    >>> import numpy as np, cenote
    >>> cenote.adaptive_avg_pool(np.array([1.0, 5, 2, 0, 3]), (2,)).round(6)
    array([2.666667, 1.666667])
    """
    return _forward((AVERAGE, True, None), (ADAPTIVE, output_size, axes), x, out, "adaptive_avg_pool")


def adaptive_avg_pool_jvp(
    x: ArrayOrShape,
    dx: Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The derivative of `adaptive_avg_pool`, applied to `dx`. `x` may be a shape: its values do not matter.

    >>> import numpy as np, cenote
    >>> cenote.adaptive_avg_pool_jvp((5,), np.arange(5.0), (2,)).round(6)
    array([1., 3.])
    """
    return _jvp((AVERAGE, True, None), (ADAPTIVE, output_size, axes), x, dx, out, "adaptive_avg_pool_jvp")


def adaptive_avg_pool_vjp(
    x: ArrayOrShape,
    gy: Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The gradient of `adaptive_avg_pool` by `x`, which may be a shape: its values do not matter.

    >>> import numpy as np, cenote
    >>> cenote.adaptive_avg_pool_vjp((5,), np.array([1.0, 10]), (2,)).round(6)
    array([0.333333, 0.333333, 3.666667, 3.333333, 3.333333])
    """
    return _vjp((AVERAGE, True, None), (ADAPTIVE, output_size, axes), x, gy, out, "adaptive_avg_pool_vjp")


def adaptive_sum_pool(
    x: Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The sum of each of `output_size` windows.

    The last axes are pooled, as many as `output_size` has entries, or the ones that `axes` names. Window i of m on an axis
    of n cells is floor(i*n/m) to ceil((i+1)*n/m).

    >>> import numpy as np, cenote
    >>> cenote.adaptive_sum_pool(np.array([1.0, 5, 2, 0, 3]), (2,))
    array([8., 5.])
    """
    return _forward((SUM,), (ADAPTIVE, output_size, axes), x, out, "adaptive_sum_pool")


def adaptive_sum_pool_jvp(
    x: ArrayOrShape,
    dx: Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The derivative of `adaptive_sum_pool`, applied to `dx`. `x` may be a shape: its values do not matter.

    >>> import numpy as np, cenote
    >>> cenote.adaptive_sum_pool_jvp((5,), np.arange(5.0), (2,))
    array([3., 9.])
    """
    return _jvp((SUM,), (ADAPTIVE, output_size, axes), x, dx, out, "adaptive_sum_pool_jvp")


def adaptive_sum_pool_vjp(
    x: ArrayOrShape,
    gy: Array,
    output_size: Ints,
    *,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The gradient of `adaptive_sum_pool` by `x`, which may be a shape: its values do not matter.

    >>> import numpy as np, cenote
    >>> cenote.adaptive_sum_pool_vjp((5,), np.array([1.0, 10]), (2,))
    array([ 1.,  1., 11., 10., 10.])
    """
    return _vjp((SUM,), (ADAPTIVE, output_size, axes), x, gy, out, "adaptive_sum_pool_vjp")


def adaptive_smooth_max_pool(
    x: Array,
    output_size: Ints,
    *,
    beta: float,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The smooth maximum of each of `output_size` windows.

    The last axes are pooled, as many as `output_size` has entries, or the ones that `axes` names. Window i of m on an axis
    of n cells is floor(i*n/m) to ceil((i+1)*n/m).

    >>> import numpy as np, cenote
    >>> cenote.adaptive_smooth_max_pool(np.array([1.0, 5, 2, 0, 3]), (2,), beta=1.0).round(6)
    array([5.065884, 3.349012])
    """
    return _forward((SMOOTH_MAX, beta, "zeros"), (ADAPTIVE, output_size, axes), x, out, "adaptive_smooth_max_pool")


def adaptive_smooth_max_pool_jvp(
    x: Array,
    dx: Array,
    output_size: Ints,
    *,
    beta: float,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The derivative of `adaptive_smooth_max_pool` at `x`, applied to `dx`.

    >>> import numpy as np, cenote
    >>> cenote.adaptive_smooth_max_pool_jvp(np.array([1.0, 5, 2, 0, 3]), np.arange(5.0), (2,), beta=1.0).round(6)
    array([1.029465, 3.445888])
    """
    return _jvp((SMOOTH_MAX, beta, "zeros"), (ADAPTIVE, output_size, axes), x, dx, out, "adaptive_smooth_max_pool_jvp")


def adaptive_smooth_max_pool_vjp(
    x: Array,
    gy: Array,
    output_size: Ints,
    *,
    beta: float,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The gradient of `adaptive_smooth_max_pool` by `x`.

    >>> import numpy as np, cenote
    >>> cenote.adaptive_smooth_max_pool_vjp(np.array([1.0, 5, 2, 0, 3]), np.array([1.0, 10]), (2,), beta=1.0).round(6)
    array([0.017148, 0.93624 , 2.641577, 0.35119 , 7.053845])
    """
    return _vjp((SMOOTH_MAX, beta, "zeros"), (ADAPTIVE, output_size, axes), x, gy, out, "adaptive_smooth_max_pool_vjp")


def adaptive_lp_pool(
    x: Array,
    output_size: Ints,
    *,
    p: float,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The p-norm of each of `output_size` windows.

    The last axes are pooled, as many as `output_size` has entries, or the ones that `axes` names. Window i of m on an axis
    of n cells is floor(i*n/m) to ceil((i+1)*n/m).

    >>> import numpy as np, cenote
    >>> cenote.adaptive_lp_pool(np.array([1.0, 5, 2, 0, 3]), (2,), p=2).round(6)
    array([5.477226, 3.605551])
    """
    return _forward((LP, p), (ADAPTIVE, output_size, axes), x, out, "adaptive_lp_pool")


def adaptive_lp_pool_jvp(
    x: Array,
    dx: Array,
    output_size: Ints,
    *,
    p: float,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The derivative of `adaptive_lp_pool` at `x`, applied to `dx`.

    >>> import numpy as np, cenote
    >>> cenote.adaptive_lp_pool_jvp(np.array([1.0, 5, 2, 0, 3]), np.arange(5.0), (2,), p=2).round(6)
    array([1.643168, 4.437602])
    """
    return _jvp((LP, p), (ADAPTIVE, output_size, axes), x, dx, out, "adaptive_lp_pool_jvp")


def adaptive_lp_pool_vjp(
    x: Array,
    gy: Array,
    output_size: Ints,
    *,
    p: float,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The gradient of `adaptive_lp_pool` by `x`.

    >>> import numpy as np, cenote
    >>> cenote.adaptive_lp_pool_vjp(np.array([1.0, 5, 2, 0, 3]), np.array([1.0, 10]), (2,), p=2).round(6)
    array([0.182574, 0.912871, 5.91215 , 0.      , 8.320503])
    """
    return _vjp((LP, p), (ADAPTIVE, output_size, axes), x, gy, out, "adaptive_lp_pool_vjp")
