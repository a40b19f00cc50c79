#!/usr/bin/env python3
"""What a call from Python costs beyond its work: small arrays, beside PyTorch on the same. `make bench-python` runs it.

Candidates take turns, and the best time of each counts, so that both see the same machine. Times are of this thread's own
use of the processor: what others do meanwhile is left out.
"""

import time

import cenote
import cenote.torch
import numpy as np
import torch
from torch.autograd import forward_ad

ROUNDS, CALLS = 300, 40  # many short rounds: some of them see a quiet machine


def arrays():
    """name, cenote's call on a numpy array, PyTorch's call on a tensor."""
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


def verbs_of(function, x, leaf):
    """The verbs of a function of tensors, each as a call; all on tensors that are there already."""
    y = function(leaf)
    gy = torch.ones_like(y)
    return {
        "forward": lambda: function(x),
        "forward, gradient": lambda: function(leaf),
        "backward": lambda: torch.autograd.grad(y, leaf, gy, retain_graph=True),
    }


def tensors():
    """The same, torch-to-torch."""
    functional, ours = torch.nn.functional, cenote.torch
    x = torch.randn(1, 1, 8, 8)
    leaf = x.clone().requires_grad_()
    for name in ("max_pool2d", "avg_pool2d"):
        both = [verbs_of(lambda t, pool=getattr(of, name): pool(t, 2), x, leaf) for of in (ours, functional)]
        for verb, call in both[0].items():
            yield f"{name}, {verb}", call, both[1][verb]
    indices = {"return_indices": True}
    yield "max_pool2d, indices", lambda: ours.max_pool2d(x, 2, **indices), lambda: functional.max_pool2d(x, 2, **indices)


def tensors_in_forward_mode():
    """Inside a dual level."""
    dual = forward_ad.make_dual(torch.randn(1, 1, 8, 8), torch.randn(1, 1, 8, 8))
    for name in ("max_pool2d", "avg_pool2d"):
        ours, theirs = getattr(cenote.torch, name), getattr(torch.nn.functional, name)
        yield f"{name}, forward mode", lambda call=ours: call(dual, 2), lambda call=theirs: call(dual, 2)


def best(call, before):
    start = time.thread_time()
    for _ in range(CALLS):
        call()
    return min(before, (time.thread_time() - start) / CALLS)


def compare(title, problems):
    print(f"{title:<32}{'cenote, us':>12}{'torch, us':>12}{'ratio':>8}")
    for name, ours, theirs in problems:
        mine = other = float("inf")
        for _ in range(ROUNDS):
            mine, other = best(ours, mine), best(theirs, other)
        print(f"{name:<32}{mine * 1e6:>12.2f}{other * 1e6:>12.2f}{mine / other:>8.2f}")


def main():
    cenote.set_num_threads(1)
    torch.set_num_threads(1)
    compare("8x8, float32, numpy", arrays())
    compare("8x8, float32, cenote.torch", tensors())
    with forward_ad.dual_level():
        compare("", tensors_in_forward_mode())


if __name__ == "__main__":
    main()
