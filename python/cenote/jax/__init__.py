"""Pooling for jax: the functions of `cenote`, to be traced, compiled, differentiated and mapped.

>>> import jax, jax.numpy as jnp, cenote.jax
>>> x = jnp.array([1.0, 5, 2, 0])
>>> jax.grad(lambda x: cenote.jax.max_pool(x, (2,)).sum())(x)
Array([0., 1., 1., 0.], dtype=float32)

Every function works under jit, grad, jvp, vmap, jacfwd, jacrev and their compositions, on CPUs, through XLA's
foreign-function interface: a compiled program calls the library directly, without Python.
"""

try:
    import jax as _jax  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name != "jax":
        raise
    raise ModuleNotFoundError("cenote.jax needs jax: pip install jax", name="jax") from None

from ._adaptive import (
    adaptive_avg_pool,
    adaptive_lp_pool,
    adaptive_max_pool,
    adaptive_min_pool,
    adaptive_smooth_max_pool,
    adaptive_sum_pool,
)
from ._global import (
    global_avg_pool,
    global_lp_pool,
    global_max_pool,
    global_min_pool,
    global_smooth_max_pool,
    global_sum_pool,
)
from ._sliding import (
    avg_pool,
    lp_pool,
    max_pool,
    min_pool,
    smooth_max_pool,
    sum_pool,
)
from ._verbs import forward

__all__ = [
    "adaptive_avg_pool",
    "adaptive_lp_pool",
    "adaptive_max_pool",
    "adaptive_min_pool",
    "adaptive_smooth_max_pool",
    "adaptive_sum_pool",
    "avg_pool",
    "forward",
    "global_avg_pool",
    "global_lp_pool",
    "global_max_pool",
    "global_min_pool",
    "global_smooth_max_pool",
    "global_sum_pool",
    "lp_pool",
    "max_pool",
    "min_pool",
    "smooth_max_pool",
    "sum_pool",
]
