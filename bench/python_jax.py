#!/usr/bin/env python3
"""cenote.jax beside jax.lax.reduce_window on the pooling layers of known networks, compiled: forward, gradient, forward mode.

Both are programs of jax.jit on the same arrays, take turns, and the best time of each counts. XLA uses as many threads as
the process may run on, which is what cenote is given too. `make bench-python` runs it; `--help` lists its options.
"""

import os

import jax
import numpy as np

import cenote.jax
from peers.jax_xla import pooling
from side_by_side import arguments, best_times, side_by_side

VERBS = ("forward", "gradient", "forward mode")


def ours(problem):
    """The layer in cenote's words."""
    p = problem
    windows = {"kernel": p.kernel, "stride": p.stride, "padding": tuple(zip(p.low, p.high)), "dilation": p.dilation}
    if p.op == "max":
        return lambda x: cenote.jax.max_pool(x, **windows)
    return lambda x: cenote.jax.avg_pool(x, **windows, count_include_pad=p.op == "avg")


def calls(verb, pool, x, dx):
    """What is measured."""
    if verb == "forward":
        program, given = jax.jit(pool), (x,)
    elif verb == "gradient":
        gy = jax.numpy.ones_like(pool(x))
        program, given = jax.jit(lambda x, gy: jax.vjp(pool, x)[1](gy)[0]), (x, gy)
    else:
        program, given = jax.jit(lambda x, dx: jax.jvp(pool, (x,), (dx,))), (x, dx)
    compiled = program.lower(*given).compile()
    return lambda: jax.block_until_ready(compiled(*given))


def measure(problem, seconds):
    pools = ours(problem), pooling(problem)
    random = np.random.default_rng(0)
    x, dx = (jax.device_put(random.standard_normal(problem.shape, np.float32)) for _ in range(2))
    for verb in VERBS:
        pair = [calls(verb, pool, x, dx) for pool in pools]
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), *[candidate() for candidate in pair])
        yield verb, best_times(pair, seconds)


def main():
    options = arguments(__doc__)
    if options.threads < len(os.sched_getaffinity(0)):  # XLA makes its threads when it is first used
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    cenote.set_num_threads(options.threads)
    side_by_side(options, VERBS, measure, "jax", "it has no such windows")


if __name__ == "__main__":
    main()
