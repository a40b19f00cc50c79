#!/usr/bin/env python3
"""cenote.torch beside torch.nn.functional on the pooling layers of known networks: forward, backward, both, and forward mode.

Both get the same tensors and threads, take turns, and the best time of each counts. `make bench-python` runs it;
`--help` lists its options.
"""

import argparse
import math
import pathlib
import time

import torch
from torch.autograd import forward_ad

import cenote.torch
from problem import LeftOut, parse

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


def best_times(candidates, seconds):
    """The best time of each candidate; they take turns for about `seconds` each."""
    best, spent = [math.inf] * len(candidates), 0.0
    for candidate in candidates:
        candidate()
    rounds = 0
    while rounds < 3 or spent < seconds * len(candidates):
        for i, candidate in enumerate(candidates):
            start = time.perf_counter()
            candidate()
            took = time.perf_counter() - start
            best[i], spent = min(best[i], took), spent + took
        rounds += 1
    return best


def measure(problem, seconds):
    padding, ceil = problem.torch_padding()
    pools = [function(module, problem, padding, ceil) for module in (cenote.torch, torch.nn.functional)]
    x, dx = torch.randn(problem.shape), torch.randn(problem.shape)
    for verb in VERBS:
        with forward_ad.dual_level():
            pair = [calls(verb, pool, x, dx) for pool in pools]
            torch.testing.assert_close(*[candidate() for candidate in pair])
            yield verb, best_times(pair, seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="layers whose names have this in them")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.02, help="for each verb of each candidate")
    parser.add_argument("--worst", type=int, default=5, help="how many of the worst ratios to print")
    parser.add_argument("--every", type=int, default=1, help="take every so many layers")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    ratios, left_out = {verb: [] for verb in VERBS}, 0
    layers = [p for p in parse(pathlib.Path(__file__).with_name("networks.txt")) if p.group == "networks"]
    for problem in [p for p in layers if options.only in p.name][:: options.every]:
        try:
            for verb, (ours, theirs) in measure(problem, options.seconds):
                ratios[verb].append((theirs / ours, ours, theirs, problem.name))
        except LeftOut:  # PyTorch cannot say this layer's padding
            left_out += 1
    print(f"{'':14}{'layers':>8}{'faster':>8}{'geometric mean':>16}{'worst':>8}{'best':>8}   PyTorch's time over cenote's")
    for verb, found in ratios.items():
        mean = math.exp(sum(math.log(ratio) for ratio, *_ in found) / len(found))
        faster = sum(ratio > 1 for ratio, *_ in found)
        print(f"{verb:14}{len(found):>8}{faster:>8}{mean:>16.2f}{min(found)[0]:>8.2f}{max(found)[0]:>8.2f}")
    for verb, found in ratios.items():
        for ratio, ours, theirs, name in sorted(found)[: options.worst]:
            print(f"{verb:14}{ratio:>6.2f}  {ours * 1e6:>10.1f} us, PyTorch {theirs * 1e6:>10.1f} us  {name}")
    print(f"{left_out} layers left out: PyTorch has no padding that means the same")


if __name__ == "__main__":
    main()
