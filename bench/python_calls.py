#!/usr/bin/env python3
"""What a call from Python costs beyond its work: small arrays, beside PyTorch on the same. `make bench-python` runs it.

Candidates take turns, and the best time of each counts, so that both see the same machine. Times are of this process's
own use of the processor: what others do meanwhile is left out.
"""

import time

import cenote
import numpy as np
import torch

ROUNDS, CALLS = 15, 4000


def problems():
    """name, cenote's call, PyTorch's call."""
    functional = torch.nn.functional
    x = np.random.default_rng(0).standard_normal((1, 1, 8, 8)).astype(np.float32)
    t = torch.from_numpy(x)
    gy = np.ones((1, 1, 4, 4), np.float32)
    leaf = t.clone().requires_grad_()
    pooled, tgy = functional.max_pool2d(leaf, 2), torch.from_numpy(gy)
    yield "max_pool2d", lambda: cenote.max_pool2d(x, 2), lambda: functional.max_pool2d(t, 2)
    yield "max_pool", lambda: cenote.max_pool(x, (2, 2)), lambda: functional.max_pool2d(t, 2)
    yield "max_pool, indices", lambda: cenote.max_pool2d(x, 2, return_indices=True), lambda: functional.max_pool2d(
        t, 2, return_indices=True
    )
    yield "avg_pool2d", lambda: cenote.avg_pool2d(x, 2), lambda: functional.avg_pool2d(t, 2)
    yield "adaptive_avg_pool2d", lambda: cenote.adaptive_avg_pool2d(x, 1), lambda: functional.adaptive_avg_pool2d(t, 1)
    yield "max_pool_vjp", lambda: cenote.max_pool_vjp(x, gy, (2, 2)), lambda: torch.autograd.grad(
        pooled, leaf, tgy, retain_graph=True
    )


def best(call, before):
    start = time.process_time()
    for _ in range(CALLS):
        call()
    return min(before, (time.process_time() - start) / CALLS)


def main():
    cenote.set_num_threads(1)
    torch.set_num_threads(1)
    print(f"{'8x8, float32':<22}{'cenote, us':>12}{'torch, us':>12}{'ratio':>8}")
    for name, ours, theirs in problems():
        mine = other = float("inf")
        for _ in range(ROUNDS):
            mine, other = best(ours, mine), best(theirs, other)
        print(f"{name:<22}{mine * 1e6:>12.2f}{other * 1e6:>12.2f}{mine / other:>8.2f}")


if __name__ == "__main__":
    main()
