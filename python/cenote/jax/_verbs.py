"""Any operator on any windows."""

from __future__ import annotations

import jax

from .._core import Operator, Windows
from ._primitives import pool


def forward(op: Operator, geometry: Windows, x: jax.Array) -> jax.Array:
    """The value of an operator on the windows of `x`: `cenote.forward` for jax. Its derivatives are jax's.

    >>> import jax, jax.numpy as jnp, cenote.jax
    >>> x = jnp.array([1.0, 5, 2, 0])
    >>> smooth = lambda x: cenote.jax.forward(cenote.SmoothMax(2.0), cenote.Sliding((2,)), x)
    >>> jax.jvp(smooth, (x,), (jnp.ones(4),))[1].round(4)
    Array([1., 1.], dtype=float32)
    """
    return pool(op, geometry, x, "forward")
