"""Windows that slide: max_pool, min_pool, avg_pool, sum_pool, smooth_max_pool, lp_pool, and their derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from . import _core
from ._tags import AVERAGE, LP, MAX, MIN, SLIDING, SMOOTH_MAX, SUM

if TYPE_CHECKING:
    from ._types import Array, ArrayOrShape, Indices, Ints, Padding, Result

_forward, _jvp, _vjp = _core.forward, _core.jvp, _core.vjp
_forward_and_indices = _core.forward_and_indices


@overload
def max_pool(
    x: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: Literal[False] = False,
    out: Result | None = None,
) -> Result: ...


@overload
def max_pool(
    x: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: Literal[True],
    out: Result | None = None,
) -> tuple[Result, Indices]: ...


def max_pool(
    x: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: bool = False,
    out: Result | None = None,
) -> Result | tuple[Result, Indices]:
    """The largest cell of each window; padding never takes part, NaN propagates.

    The last axes are pooled, as many as `kernel` has entries, or the ones that `axes` names. `padding` is an int, one
    per axis, (low, high) pairs, "same", "same_lower" or "valid".

    `ties` says which of several equal cells receives the gradient: "first", "all" or "split". With `return_indices`, the
    second result has the flat index of each winner in the pooled axes, as PyTorch numbers them, or -1 where a window has
    no cell of the input.

    >>> import numpy as np, cenote
    >>> x = np.array([[1.0, 5, 2, 0], [4, 3, 8, 6], [7, 9, 1, 1], [0, 2, 3, 4]])
    >>> cenote.max_pool(x, (2, 2))
    array([[5., 8.],
           [9., 4.]])
    >>> cenote.max_pool(x, (2, 2), return_indices=True)[1]
    array([[ 1,  6],
           [ 9, 15]])
    """
    windows = (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes)
    if return_indices:
        return _forward_and_indices((MAX, ties), windows, x, out, "max_pool")
    return _forward((MAX, ties), windows, x, out, "max_pool")


def max_pool_jvp(
    x: Array,
    dx: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    ties: str = "first",
    out: Result | None = None,
) -> Result:
    """The derivative of `max_pool` at `x`, applied to `dx`: the tangents at the winners.

    >>> import numpy as np, cenote
    >>> x, dx = np.array([1.0, 5, 2, 0]), np.array([1.0, 2, 3, 4])
    >>> cenote.max_pool_jvp(x, dx, (2,))
    array([2., 3.])
    """
    return _jvp((MAX, ties), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, dx, out, "max_pool_jvp")


def max_pool_vjp(
    x: Array,
    gy: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    ties: str = "first",
    out: Result | None = None,
) -> Result:
    """The gradient of `max_pool` by `x`: `gy` at the winners.

    >>> import numpy as np, cenote
    >>> x, gy = np.array([1.0, 5, 2, 0]), np.array([1.0, 10])
    >>> cenote.max_pool_vjp(x, gy, (2,))
    array([ 0.,  1., 10.,  0.])
    """
    return _vjp((MAX, ties), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, gy, out, "max_pool_vjp")


@overload
def min_pool(
    x: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: Literal[False] = False,
    out: Result | None = None,
) -> Result: ...


@overload
def min_pool(
    x: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: Literal[True],
    out: Result | None = None,
) -> tuple[Result, Indices]: ...


def min_pool(
    x: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    ties: str = "first",
    return_indices: bool = False,
    out: Result | None = None,
) -> Result | tuple[Result, Indices]:
    """The smallest cell of each window; padding never takes part, NaN propagates.

    The last axes are pooled, as many as `kernel` has entries, or the ones that `axes` names. `padding` is an int, one
    per axis, (low, high) pairs, "same", "same_lower" or "valid".

    `ties` says which of several equal cells receives the gradient: "first", "all" or "split". With `return_indices`, the
    second result has the flat index of each winner in the pooled axes, as PyTorch numbers them, or -1 where a window has
    no cell of the input.

    >>> import numpy as np, cenote
    >>> x = np.array([[1.0, 5, 2, 0], [4, 3, 8, 6], [7, 9, 1, 1], [0, 2, 3, 4]])
    >>> cenote.min_pool(x, (2, 2))
    array([[1., 0.],
           [0., 1.]])
    >>> cenote.min_pool(x, (2, 2), return_indices=True)[1]
    array([[ 0,  3],
           [12, 10]])
    """
    windows = (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes)
    if return_indices:
        return _forward_and_indices((MIN, ties), windows, x, out, "min_pool")
    return _forward((MIN, ties), windows, x, out, "min_pool")


def min_pool_jvp(
    x: Array,
    dx: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    ties: str = "first",
    out: Result | None = None,
) -> Result:
    """The derivative of `min_pool` at `x`, applied to `dx`: the tangents at the winners.

    >>> import numpy as np, cenote
    >>> x, dx = np.array([1.0, 5, 2, 0]), np.array([1.0, 2, 3, 4])
    >>> cenote.min_pool_jvp(x, dx, (2,))
    array([1., 4.])
    """
    return _jvp((MIN, ties), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, dx, out, "min_pool_jvp")


def min_pool_vjp(
    x: Array,
    gy: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    ties: str = "first",
    out: Result | None = None,
) -> Result:
    """The gradient of `min_pool` by `x`: `gy` at the winners.

    >>> import numpy as np, cenote
    >>> x, gy = np.array([1.0, 5, 2, 0]), np.array([1.0, 10])
    >>> cenote.min_pool_vjp(x, gy, (2,))
    array([ 1.,  0.,  0., 10.])
    """
    return _vjp((MIN, ties), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, gy, out, "min_pool_vjp")


def avg_pool(
    x: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The mean of each window.

    The last axes are pooled, as many as `kernel` has entries, or the ones that `axes` names. `padding` is an int, one
    per axis, (low, high) pairs, "same", "same_lower" or "valid".

    The sum of the cells is divided by the number of cells in the padded input, by those in the input itself
    (`count_include_pad=False`), or by `divisor_override`. Halves are added in a wider type; integers are exact and round
    half to even.

    >>> import numpy as np, cenote
    >>> cenote.avg_pool(np.array([1.0, 5, 2, 0]), (2,))
    array([3., 1.])
    >>> cenote.avg_pool(np.array([1.0, 5, 2]), (2,), padding="same", count_include_pad=False)
    array([3., 2.])
    """
    return _forward((AVERAGE, count_include_pad, divisor_override), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, out, "avg_pool")


def avg_pool_jvp(
    x: ArrayOrShape,
    dx: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The derivative of `avg_pool`, applied to `dx`. `x` may be a shape: its values do not matter.

    >>> import numpy as np, cenote
    >>> cenote.avg_pool_jvp((4,), np.array([1.0, 2, 3, 4]), (2,))
    array([1.5, 3.5])
    """
    return _jvp((AVERAGE, count_include_pad, divisor_override), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, dx, out, "avg_pool_jvp")


def avg_pool_vjp(
    x: ArrayOrShape,
    gy: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The gradient of `avg_pool` by `x`, which may be a shape: its values do not matter.

    >>> import numpy as np, cenote
    >>> cenote.avg_pool_vjp((4,), np.array([1.0, 10]), (2,))
    array([0.5, 0.5, 5. , 5. ])
    """
    return _vjp((AVERAGE, count_include_pad, divisor_override), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, gy, out, "avg_pool_vjp")


def sum_pool(
    x: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The sum of each window; padding adds nothing.

    The last axes are pooled, as many as `kernel` has entries, or the ones that `axes` names. `padding` is an int, one
    per axis, (low, high) pairs, "same", "same_lower" or "valid". Integer sums are clamped to their type.

    >>> import numpy as np, cenote
    >>> cenote.sum_pool(np.array([1.0, 5, 2, 0]), (2,))
    array([6., 2.])
    """
    return _forward((SUM,), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, out, "sum_pool")


def sum_pool_jvp(
    x: ArrayOrShape,
    dx: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The derivative of `sum_pool`, applied to `dx`. `x` may be a shape: its values do not matter.

    >>> import numpy as np, cenote
    >>> cenote.sum_pool_jvp((4,), np.array([1.0, 2, 3, 4]), (2,))
    array([3., 7.])
    """
    return _jvp((SUM,), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, dx, out, "sum_pool_jvp")


def sum_pool_vjp(
    x: ArrayOrShape,
    gy: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The gradient of `sum_pool` by `x`, which may be a shape: its values do not matter.

    >>> import numpy as np, cenote
    >>> cenote.sum_pool_vjp((4,), np.array([1.0, 10]), (2,))
    array([ 1.,  1., 10., 10.])
    """
    return _vjp((SUM,), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, gy, out, "sum_pool_vjp")


def smooth_max_pool(
    x: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    beta: float,
    ceil_mode: bool = False,
    padding_mode: str = "zeros",
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The smooth maximum log(sum(exp(beta * cells))) / beta of each window; a negative beta gives the smooth minimum.

    The last axes are pooled, as many as `kernel` has entries, or the ones that `axes` names. `padding` is an int, one
    per axis, (low, high) pairs, "same", "same_lower" or "valid".

    Cells of the padding count as zeros, or not at all (`padding_mode="ignore"`). Nothing overflows.

    >>> import numpy as np, cenote
    >>> cenote.smooth_max_pool(np.array([1.0, 5, 2, 0]), (2,), beta=10.0).round(6)
    array([5., 2.])
    """
    return _forward((SMOOTH_MAX, beta, padding_mode), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, out, "smooth_max_pool")


def smooth_max_pool_jvp(
    x: Array,
    dx: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    beta: float,
    ceil_mode: bool = False,
    padding_mode: str = "zeros",
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The derivative of `smooth_max_pool` at `x`, applied to `dx`: tangents weighted by softmax(beta * cells).

    >>> import numpy as np, cenote
    >>> x, dx = np.array([1.0, 1, 2, 0]), np.array([1.0, 2, 3, 4])
    >>> cenote.smooth_max_pool_jvp(x, dx, (2,), beta=1.0).round(6)
    array([1.5     , 3.119203])
    """
    return _jvp((SMOOTH_MAX, beta, padding_mode), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, dx, out, "smooth_max_pool_jvp")


def smooth_max_pool_vjp(
    x: Array,
    gy: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    beta: float,
    ceil_mode: bool = False,
    padding_mode: str = "zeros",
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The gradient of `smooth_max_pool` by `x`: `gy` weighted by softmax(beta * cells).

    >>> import numpy as np, cenote
    >>> x, gy = np.array([1.0, 1, 2, 0]), np.array([1.0, 10])
    >>> cenote.smooth_max_pool_vjp(x, gy, (2,), beta=1.0).round(6)
    array([0.5     , 0.5     , 8.807971, 1.192029])
    """
    return _vjp((SMOOTH_MAX, beta, padding_mode), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, gy, out, "smooth_max_pool_vjp")


def lp_pool(
    x: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    p: float,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The p-norm sum(|cell|**p)**(1/p) of each window, p at least 1; padding adds nothing.

    The last axes are pooled, as many as `kernel` has entries, or the ones that `axes` names. `padding` is an int, one
    per axis, (low, high) pairs, "same", "same_lower" or "valid".

    >>> import numpy as np, cenote
    >>> cenote.lp_pool(np.array([3.0, 4, 0, 0]), (2,), p=2)
    array([5., 0.])
    """
    return _forward((LP, p), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, out, "lp_pool")


def lp_pool_jvp(
    x: Array,
    dx: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    p: float,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The derivative of `lp_pool` at `x`, applied to `dx`.

    >>> import numpy as np, cenote
    >>> cenote.lp_pool_jvp(np.array([3.0, 4, 0, 0]), np.ones(4), (2,), p=2)
    array([1.4, 0. ])
    """
    return _jvp((LP, p), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, dx, out, "lp_pool_jvp")


def lp_pool_vjp(
    x: Array,
    gy: Array,
    kernel: Ints,
    stride: Ints | None = None,
    padding: Padding = 0,
    dilation: Ints = 1,
    *,
    p: float,
    ceil_mode: bool = False,
    axes: Ints | None = None,
    out: Result | None = None,
) -> Result:
    """The gradient of `lp_pool` by `x`.

    >>> import numpy as np, cenote
    >>> cenote.lp_pool_vjp(np.array([3.0, 4, 0, 0]), np.array([1.0, 10]), (2,), p=2)
    array([0.6, 0.8, 0. , 0. ])
    """
    return _vjp((LP, p), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), x, gy, out, "lp_pool_vjp")
