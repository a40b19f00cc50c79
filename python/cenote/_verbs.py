"""The verbs for any operator and any windows, and questions to windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from . import _core
from ._core import Geometry, LinearMap, Operator, Windows

if TYPE_CHECKING:
    from ._types import Array, ArrayOrShape, Result


class Tap(NamedTuple):
    """A cell of a window: its position in the input, and whether it lies there or in the padding."""

    position: tuple[int, ...]
    real: bool


def forward(op: Operator, geometry: Windows, x: Array, *, out: Result | None = None) -> Result:
    """The value of an operator on the windows of `x`.

    >>> import numpy as np, cenote
    >>> x = np.arange(16.0).reshape(4, 4)
    >>> cenote.forward(cenote.Max(), cenote.Sliding((2, 2)), x)
    array([[ 5.,  7.],
           [13., 15.]])
    """
    return _core.forward(op, geometry, x, out, "forward")


def jvp(op: Operator, geometry: Windows, x: ArrayOrShape, dx: Array, *, out: Result | None = None) -> Result:
    """The derivative at `x`, applied to the tangent `dx`. For Average and Sum, `x` may be a shape.

    >>> import numpy as np, cenote
    >>> x = np.array([1.0, 3.0, 2.0, 0.0])
    >>> cenote.jvp(cenote.Max(), cenote.Sliding((2,)), x, np.array([10.0, 20.0, 30.0, 40.0]))
    array([20., 30.])
    """
    return _core.jvp(op, geometry, x, dx, out, "jvp")


def vjp(op: Operator, geometry: Windows, x: ArrayOrShape, gy: Array, *, out: Result | None = None) -> Result:
    """The transposed derivative at `x`, applied to the gradient `gy`. For Average and Sum, `x` may be a shape.

    >>> import numpy as np, cenote
    >>> cenote.vjp(cenote.Average(), cenote.Sliding((2,)), (4,), np.array([1.0, 10.0]))
    array([0.5, 0.5, 5. , 5. ])
    """
    return _core.vjp(op, geometry, x, gy, out, "vjp")


def linearize(op: Operator, geometry: Windows, x: Array) -> LinearMap:
    """The value at `x`, and the derivative there, to be applied many times without looking at `x` again.

    >>> import numpy as np, cenote
    >>> at = cenote.linearize(cenote.Max(), cenote.Sliding((2, 2)), np.arange(16.0).reshape(4, 4))
    >>> at.value
    array([[ 5.,  7.],
           [13., 15.]])
    >>> at.pull(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[0., 0., 0., 0.],
           [0., 1., 0., 2.],
           [0., 0., 0., 0.],
           [0., 3., 0., 4.]])
    >>> at.indices()
    array([[ 5,  7],
           [13, 15]])
    >>> at.winners()
    array([[3, 3],
           [3, 3]], dtype=uint8)
    """
    return _core.linearize(op, geometry, x)


def resolve(geometry: Windows, shape: Sequence[int]) -> Geometry:
    """Windows on an input of one shape, checked; it prints what it does, and stands wherever windows stand.

    >>> import cenote
    >>> cenote.resolve(cenote.Sliding((3, 3), stride=2, padding=1), (8, 64, 112, 112))
    8x64x112x112 -> 8x64x56x56, sliding 3x3 stride 2 padding 1
    """
    return _core.resolve(geometry, shape)


def output_shape(geometry: Windows, shape: Sequence[int] | None = None) -> tuple[int, ...]:
    """The shape of the result on an input of `shape`, which may be left out where the geometry has one.

    >>> import cenote
    >>> cenote.output_shape(cenote.Adaptive((7, 7)), (64, 30, 40))
    (64, 7, 7)
    """
    return _core.output_shape(geometry, shape)


def windows(geometry: Windows, shape: Sequence[int] | None, index: Sequence[int]) -> list[Tap]:
    """The taps of one output, row-major, those in the padding included.

    >>> import cenote
    >>> cenote.windows(cenote.Sliding((3,), padding=1), (4,), (0,))
    [Tap(position=(-1,), real=False), Tap(position=(0,), real=True), Tap(position=(1,), real=True)]
    """
    return [Tap(*tap) for tap in _core.windows(geometry, shape, index)]
