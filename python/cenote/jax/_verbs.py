"""The verbs for any operator and any windows."""

# jax does not type what extends it.
# mypy: allow-untyped-calls

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from .. import _core
from .._core import Max, Min, Operator, Windows
from . import _calls
from ._primitives import forward_with_point, keeps_winners, known, output_shape, pull_p, push_p, select_p

if TYPE_CHECKING:
    from ._calls import ArrayOrShape


def forward(op: Operator, geometry: Windows, x: jax.Array) -> jax.Array:
    """The value of an operator on the windows of `x`: `cenote.forward` for jax.

    >>> import jax, jax.numpy as jnp, cenote.jax
    >>> x = jnp.array([1.0, 5, 2, 0])
    >>> smooth = lambda x: cenote.jax.forward(cenote.SmoothMax(2.0), cenote.Sliding((2,)), x)
    >>> jax.jvp(smooth, (x,), (jnp.ones(4),))[1].round(4)
    Array([1., 1.], dtype=float32)
    """
    return _calls.pool(op, geometry, x, "forward")


def jvp(op: Operator, geometry: Windows, x: ArrayOrShape, dx: jax.Array) -> jax.Array:
    """The derivative at `x`, applied to the tangent `dx`. For Average and Sum, `x` may be a shape.

    >>> import jax.numpy as jnp, cenote.jax
    >>> x = jnp.array([1.0, 3, 2, 0])
    >>> cenote.jax.jvp(cenote.Max(), cenote.Sliding((2,)), x, jnp.array([10.0, 20, 30, 40]))
    Array([20., 30.], dtype=float32)
    """
    return _calls.jvp(op, geometry, x, dx, "jvp")


def vjp(op: Operator, geometry: Windows, x: ArrayOrShape, gy: jax.Array) -> jax.Array:
    """The transposed derivative at `x`, applied to the gradient `gy`. For Average and Sum, `x` may be a shape.

    >>> import jax.numpy as jnp, cenote.jax
    >>> cenote.jax.vjp(cenote.Average(), cenote.Sliding((2,)), (4,), jnp.array([1.0, 10]))
    Array([0.5, 0.5, 5. , 5. ], dtype=float32)
    """
    return _calls.vjp(op, geometry, x, gy, "vjp")


def linearize(op: Operator, geometry: Windows, x: jax.Array) -> LinearMap:
    """The value at `x`, and the derivative there, to be applied many times without looking at `x` again.

    >>> import jax.numpy as jnp, cenote.jax
    >>> at = cenote.jax.linearize(cenote.Max(), cenote.Sliding((2,)), jnp.array([1.0, 5, 2, 0]))
    >>> at.value
    Array([5., 2.], dtype=float32)
    >>> at.pull(jnp.array([1.0, 10]))
    Array([ 0.,  1., 10.,  0.], dtype=float32)
    >>> at.winners(), at.indices()
    (Array([1, 0], dtype=uint8), Array([1, 2], dtype=int32))
    """
    x, op, windows = _calls.checked(op, geometry, x, "linearize", derivative=True)
    value, point = forward_with_point(x, op, windows)
    return LinearMap(value, point, op, windows, x.shape)


@jax.tree_util.register_pytree_node_class
class LinearMap:
    """A derivative at a point. It keeps what it needs: one byte an output for a maximum, nothing for an average, the input
    for everything else. For jax it is a tree of these arrays, so that programs may take it and return it."""

    value: jax.Array

    def __init__(self, value: Any, point: tuple[Any, ...], op: Operator, windows: Any, shape: tuple[int, ...]) -> None:
        self.value = value
        self._point, self._op, self._windows, self._shape = point, op, windows, shape

    def push(self, dx: jax.Array) -> jax.Array:
        """J dx, of the output's shape."""
        dx = _calls.as_array(dx, "dx", "push")
        _calls.check_like(dx, self._shape, self.value.dtype, "dx", "push", "the point of linearization")
        dy: jax.Array = push_p.bind(*self._point, dx, op=self._op, windows=self._windows, shape=self._shape)
        return dy

    def pull(self, gy: jax.Array) -> jax.Array:
        """J^T gy, of the input's shape."""
        gy = _calls.as_array(gy, "gy", "pull")
        shape = output_shape(self._windows, self._shape)
        _calls.check_like(gy, shape, self.value.dtype, "gy", "pull", "the point of linearization")
        gx: jax.Array = pull_p.bind(*self._point, gy, op=self._op, windows=self._windows, shape=self._shape)
        return gx

    def winners(self) -> jax.Array:
        """The winning tap of each output as its offset inside the window, in the smallest unsigned type that holds it;
        the type's largest number where a window has no real tap."""
        return self._winners("winners")

    def indices(self) -> jax.Array:
        """The winning cell of each output as PyTorch numbers it: flat in the pooled axes, or -1."""
        return _calls.flat_indices(self._winners("indices"), self._op, self._windows, self._shape, "indices")

    @property
    def bytes_kept(self) -> int:
        return sum(each.size * each.dtype.itemsize for each in self._point)

    def _winners(self, caller: str) -> jax.Array:
        if not isinstance(self._op, (Max, Min)):
            raise TypeError(f"{caller}: only Max and Min have winners")
        winners: jax.Array
        if keeps_winners(self._op):
            (winners,) = self._point
        else:
            winners = select_p.bind(*self._point, op=self._op, windows=self._windows)[1]
        return winners

    def __repr__(self) -> str:
        return f"LinearMap of {_core.resolve(self._windows, known(self._shape))!r}"

    def tree_flatten(self) -> tuple[Any, Any]:
        return (self.value, self._point), (self._op, self._windows, self._shape)

    @classmethod
    def tree_unflatten(cls, rest: Any, leaves: Any) -> LinearMap:
        return cls(*leaves, *rest)
