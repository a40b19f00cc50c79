#!/usr/bin/env python3
"""cenote.torch beside torch.nn.functional on the pooling layers of known networks: forward, backward, both, and forward mode.

Both get the same tensors and threads, take turns, and the best time of each counts. `make bench-python` runs it;
`--help` lists its options.
"""

import contextlib

import torch
from torch.autograd import forward_ad

import cenote.torch
from problem import LeftOut
from side_by_side import arguments, best_times, side_by_side

VERBS = ("forward", "backward", "both", "forward mode")


def function(module, problem, padding, ceil):
    """The layer as a function of a tensor, in PyTorch's words."""
    if problem.op == "max":
        pool = getattr(module, f"max_pool{problem.rank}d")
        return lambda x: pool(x, problem.kernel, problem.stride, padding, problem.dilation, ceil)
    if any(d != 1 for d in problem.dilation):
        raise LeftOut("PyTorch's average has no dilation")
    pool = getattr(module, f"avg_pool{problem.rank}d")
    return lambda x: pool(x, problem.kernel, problem.stride, padding, ceil, problem.op == "avg")


def calls(verb, pool, x, dx):
    """What is measured, and its result for comparison."""
    if verb == "forward":
        return lambda: pool(x)
    if verb in ("backward", "both"):
        leaf = x.clone(memory_format=torch.preserve_format).requires_grad_()
        y = pool(leaf)
        gy = torch.ones_like(y)
        if verb == "both":
            return lambda: torch.autograd.grad(pool(leaf), leaf, gy)[0]
        return lambda: torch.autograd.grad(y, leaf, gy, retain_graph=True)[0]
    dual = forward_ad.make_dual(x, dx)
    return lambda: forward_ad.unpack_dual(pool(dual)).tangent


def measure(problem, seconds):
    padding, ceil = problem.torch_padding()
    pools = [function(module, problem, padding, ceil) for module in (cenote.torch, torch.nn.functional)]
    x, dx = torch.randn(problem.shape), torch.randn(problem.shape)
    for verb in VERBS:
        with forward_ad.dual_level() if verb == "forward mode" else contextlib.nullcontext():
            pair = [calls(verb, pool, x, dx) for pool in pools]
            torch.testing.assert_close(*[candidate() for candidate in pair])
            yield verb, best_times(pair, seconds)


def main():
    options = arguments(__doc__)
    torch.set_num_threads(options.threads)
    side_by_side(options, VERBS, measure, "PyTorch", "it has no padding that means the same")


if __name__ == "__main__":
    main()
