"""JAX: compiled reduce_window, its VJP (select_and_scatter for the maximum) and its JVP."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from peers import Candidate, calls
from problem import LeftOut


def pooling(p):
    """The problem's layer as networks in jax write it, on an array in memory order."""
    if p.windows == "adaptive":
        raise LeftOut("JAX has no adaptive windows")
    if p.op == "smax":
        raise LeftOut("JAX has no smooth maximum")

    def spread(space, rest):
        return (rest, *space, rest) if p.channels_last else (rest, rest, *space)

    window, stride, dilation = spread(p.kernel, 1), spread(p.stride, 1), spread(p.dilation, 1)
    pads = spread(tuple(zip(p.low, p.high)), (0, 0))
    zero = np.zeros((), p.type)[()]

    def total(x):
        return lax.reduce_window(x, zero, lax.add, window, stride, pads, window_dilation=dilation)

    if p.op == "max":
        integer = p.type.kind in "iu"
        lowest = np.array(np.iinfo(p.type).min if integer else -np.inf, p.type)[()]

        def pool(x):
            return lax.reduce_window(x, lowest, lax.max, window, stride, pads, window_dilation=dilation)
    elif p.op == "avg":

        def pool(x):
            return total(x) / np.array(p.taps, p.type)
    else:
        ones = np.ones(spread(p.space, 1), p.type)

        def pool(x):
            return total(x) / total(ones)

    return pool


class Jax:
    name = "jax"

    def __init__(self, threads, folder):
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", True)
        self.version = jax.__version__
        jax.block_until_ready(jnp.zeros(8) + 1)

    def candidates(self, problem, verb, arrays):
        p = problem
        if verb in ("winners", "vjp_from_input"):
            raise LeftOut("JAX keeps the input, not the winners")
        pool = pooling(p)
        x = jax.device_put(arrays.x)
        if verb == "forward":
            function, arguments = jax.jit(pool), (x,)
        elif verb == "jvp":
            function, arguments = jax.jit(lambda a, b: jax.jvp(pool, (a,), (b,))), (x, jax.device_put(arrays.dx))
        elif p.op == "max":
            function, arguments = jax.jit(lambda a, g: jax.vjp(pool, a)[1](g)[0]), (x, jax.device_put(arrays.gy))
        else:
            transposed = jax.linear_transpose(pool, x)
            function, arguments = jax.jit(lambda g: transposed(g)[0]), (jax.device_put(arrays.gy),)
        function = function.lower(*arguments).compile()
        box = []

        def run():
            box[:] = [jax.block_until_ready(function(*arguments))]

        kept = p.in_bytes if p.op == "max" and verb == "vjp" else None
        return [Candidate("", calls(run), lambda: [np.asarray(r) for r in
                                                   (box[0] if isinstance(box[0], (tuple, list)) else [box[0]])],
                          keep=arguments, bytes_kept=kept)]
