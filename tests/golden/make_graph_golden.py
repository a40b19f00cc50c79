#!/usr/bin/env python3
"""Makes graph.txt: composed programs run by PyTorch 2.13.0 on the CPU in f64, read by tests/graph/golden_test.cpp.

Usage: make_graph_golden.py [output file]       (default: graph.txt beside this script; needs only torch)

The programs are drawn by a generator of this script's own, so every run makes the same ones. Each is a list of
instructions over arrays; PyTorch gives its values, its gradients by every input (reverse mode) and its tangents
(torch.autograd.forward_ad).

FORMAT. One program after the other, one line each:
  program NUMBER
  INSTRUCTION [#input ...] [: number ...] [= real]     as in tests/support/programs.hpp; the first is number 0
  outputs #node ...
  x | dx | gy | y | dy | gx  value ...                 the inputs, their tangents, the output gradients, the values, the
                                                       tangents of the outputs, the gradients of the inputs; one line per
                                                       array, those of a kind one after the other
Values that are drawn are multiples of 1/1024; results have 14 significant digits.

What PyTorch has no word for is composed of its own operations: smooth max is logsumexp of unfolded windows (padding
counts as zeros), global max is adaptive max to 1 (the first of equals has the gradient), a mean over axes keeps them.
Programs whose results are not finite, or larger than 10^6, are drawn again.
"""

import math
import os
import sys

import torch
import torch.autograd.forward_ad as forward_ad
import torch.nn.functional as F

from make_golden import Random

PROGRAMS = 240
MOST = 64  # elements of an array

MAX_POOL = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVG_POOL = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
ADAPTIVE_MAX = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}
ADAPTIVE_AVG = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def with_space(x, d, function):
    """PyTorch pools (batch, channels, space...): all axes before the last d become one channel axis."""
    shape = x.shape
    y = function(x.reshape((1, -1) + shape[len(shape) - d:]))
    return y.reshape(shape[: len(shape) - d] + y.shape[2:])


def windows(numbers):
    d = numbers[0]
    kernel, stride, padding, dilation = (numbers[1 + i * d : 1 + (i + 1) * d] for i in range(4))
    return d, kernel, stride, padding, dilation, bool(numbers[1 + 4 * d])


def smooth_max(x, d, kernel, stride, padding, dilation, beta):
    """(batch, channels, space...): logsumexp over windows, cut out axis by axis."""
    x = F.pad(x, [p for pad in reversed(padding) for p in (pad, pad)])
    taps = [x]
    for a in range(d):
        span = dilation[a] * (kernel[a] - 1) + 1
        axis = 2 + a
        outs = (x.shape[axis] - span) // stride[a] + 1
        taps = [
            t.narrow(axis, w * dilation[a], (outs - 1) * stride[a] + 1).index_select(
                axis, torch.arange(0, (outs - 1) * stride[a] + 1, stride[a])
            )
            for t in taps
            for w in range(kernel[a])
        ]
    return torch.logsumexp(beta * torch.stack(taps), 0) / beta


def run_one(op, x, numbers, real):
    if op in ("max_pool", "avg_pool", "avg_pool_real", "smooth_max_pool"):
        d, kernel, stride, padding, dilation, ceil = windows(numbers)
        if op == "max_pool":
            return with_space(x[0], d, lambda t: MAX_POOL[d](t, kernel, stride, padding, dilation, ceil))
        if op == "smooth_max_pool":
            return with_space(x[0], d, lambda t: smooth_max(t, d, kernel, stride, padding, dilation, real))
        return with_space(x[0], d, lambda t: AVG_POOL[d](t, kernel, stride, padding, ceil, op == "avg_pool"))
    if op == "adaptive_max_pool":
        return with_space(x[0], len(numbers), lambda t: ADAPTIVE_MAX[len(numbers)](t, numbers))
    if op == "adaptive_avg_pool":
        return with_space(x[0], len(numbers), lambda t: ADAPTIVE_AVG[len(numbers)](t, numbers))
    if op == "global_max_pool":
        return with_space(x[0], numbers[0], lambda t: ADAPTIVE_MAX[numbers[0]](t, [1] * numbers[0]))
    if op == "global_avg_pool":
        return x[0].mean(dim=list(range(-numbers[0], 0)))
    if op == "conv":
        d = numbers[0]
        stride, padding, dilation = (numbers[1 + i * d : 1 + (i + 1) * d] for i in range(3))
        return CONV[d](x[0], x[1], x[2] if len(x) == 3 else None, stride, padding, dilation)
    simple = {
        "neg": lambda: -x[0],
        "relu": lambda: F.relu(x[0]),
        "tanh": lambda: torch.tanh(x[0]),
        "exp": lambda: torch.exp(x[0]),
        "log": lambda: torch.log(x[0]),
        "scale": lambda: x[0] * (numbers[0] / 4),
        "add": lambda: x[0] + x[1],
        "sub": lambda: x[0] - x[1],
        "mul": lambda: x[0] * x[1],
        "matmul": lambda: x[0] @ x[1],
        "linear": lambda: F.linear(x[0], x[1], x[2] if len(x) == 3 else None),
        "reshape": lambda: x[0].reshape(numbers),
        "flatten": lambda: x[0].flatten(numbers[0]),
        "concatenate": lambda: torch.cat(x, numbers[0]),
        "sum": lambda: x[0].sum(dim=numbers),
        "mean": lambda: x[0].mean(dim=numbers, keepdim=True),
        "detach": lambda: forward_ad.unpack_dual(x[0]).primal.detach(),  # detach() alone keeps the tangent
        "squared_error": lambda: F.mse_loss(x[0], x[1]),
        # F.cross_entropy wants classes second; rows are all axes but the last.
        "cross_entropy": lambda: F.cross_entropy(x[0].reshape(-1, x[0].shape[-1]), x[1].reshape(-1, x[1].shape[-1])),
    }
    return simple[op]()


def execute(code, outputs, inputs):
    values, given = [], iter(inputs)
    for op, sources, numbers, real in code:
        values.append(next(given) if op == "input" else run_one(op, [values[i] for i in sources], numbers, real))
    return [values[i] for i in outputs]


class Program:
    """Draws instructions on what is there already."""

    def __init__(self, rng):
        self.rng, self.code, self.shapes, self.tame, self.positive = rng, [], [], [], []
        rank = rng.within(1, 4)
        self.add_input([rng.within(1, (6, 6, 4, 3)[rank - 1]) for _ in range(rank)])
        for _ in range(rng.within(3, 11)):
            self.draw(self.last() if rng.chance(65) else rng.within(0, len(self.code) - 1))
        self.outputs = [self.last()]
        if rng.chance(40):
            self.outputs.append(rng.within(0, len(self.code) - 1))

    def last(self):
        """The latest result, so that programs grow deep."""
        return max([0] + [i for i, step in enumerate(self.code) if step[0] != "input"])

    def push(self, op, sources, numbers=(), real=0.0, tame=False, positive=False):
        numbers = list(numbers)
        if op == "input":
            shape = numbers
        else:
            shape = list(run_one(op, [torch.zeros(self.shapes[i], dtype=torch.float64) for i in sources], numbers, real).shape)
        if math.prod(shape) > MOST and op != "input":
            return
        self.code.append((op, list(sources), numbers, real))
        self.shapes.append(shape)
        self.tame.append(tame)
        self.positive.append(positive)

    def add_input(self, shape):
        self.push("input", [], shape, tame=True)
        return len(self.code) - 1

    def of_shape(self, shape):
        same = [i for i, other in enumerate(self.shapes) if other == list(shape)]
        return self.rng.choice(same) if same and self.rng.chance(70) else self.add_input(list(shape))

    def draw(self, x):
        rng, shape, tame, positive = self.rng, self.shapes[x], self.tame[x], self.positive[x]
        kind = rng.within(0, 19)
        if kind <= 4 and shape:
            self.pool(x, shape, tame)
        elif kind == 5:
            self.push(rng.choice(["neg", "relu"]), [x], tame=tame)
        elif kind == 6:
            self.push("scale", [x], [rng.within(-6, 6)])
        elif kind == 7:
            self.push(rng.choice(["add", "sub"]), [x, self.of_shape(shape)])
        elif kind == 8:
            self.push("mul", [x, self.of_shape(shape)])
        elif kind == 9 and len(shape) == 2:
            self.push("matmul", [x, self.of_shape([shape[1], rng.within(1, 4)])])
        elif kind in (9, 10) and shape:
            out = rng.within(1, 4)
            sources = [x, self.of_shape([out, shape[-1]])]
            self.push("linear", sources + ([self.of_shape([out])] if rng.chance(60) else []))
        elif kind in (11, 12) and len(shape) >= 2:
            self.convolve(x, shape)
        elif kind == 13 and shape:
            name, numbers = rng.choice([("reshape", [math.prod(shape)]), ("flatten", [rng.within(0, len(shape) - 1)])])
            self.push(name, [x], numbers, tame=tame, positive=positive)
        elif kind == 14 and shape:
            self.push("concatenate", [x, self.of_shape(shape), x], [rng.within(0, len(shape) - 1)])
        elif kind == 15 and shape:
            axes = sorted({rng.within(0, len(shape) - 1) for _ in range(2)})
            self.push(rng.choice(["sum", "mean"]), [x], axes)
        elif kind == 16:
            self.push("squared_error", [x, self.of_shape(shape)])
        elif kind == 17 and shape:
            self.push("cross_entropy", [x, self.of_shape(shape)])
        elif kind == 18:
            self.push("detach", [x], tame=tame, positive=positive)
        elif positive:
            self.push("log", [x], tame=True)
        elif tame:
            self.push("exp", [x], positive=True)
        else:
            self.push("tanh", [x], tame=True)

    def pool(self, x, shape, tame):
        rng = self.rng
        d = rng.within(1, min(3, len(shape)))
        kind = rng.within(0, 6)
        if kind == 0:
            self.push(rng.choice(["global_max_pool", "global_avg_pool"]), [x], [d], tame=tame)
        elif kind == 1:
            output = [rng.within(1, 3) for _ in range(d)]
            self.push(rng.choice(["adaptive_max_pool", "adaptive_avg_pool"]), [x], output, tame=tame)
        else:
            op = rng.choice(["max_pool", "avg_pool", "avg_pool_real", "smooth_max_pool"])
            kernel, stride, padding, dilation = [], [], [], []
            for size in shape[len(shape) - d:]:
                k = rng.within(1, min(3, size))
                kernel.append(k)
                padding.append(rng.within(0, k // 2))
                stride.append(rng.within(1, 2))
                wide = op in ("max_pool", "smooth_max_pool") and size > 2 * (k - 1)
                dilation.append(rng.within(1, 2) if wide else 1)
            ceil = rng.within(0, 1) if op != "smooth_max_pool" else 0
            if op == "max_pool" and any(r > 1 for r in dilation):
                padding = [0] * d  # dilation could step over the input: PyTorch says -inf, M5 says 0
            real = rng.choice([1.5, 4.0, -2.0]) if op == "smooth_max_pool" else 0.0
            self.push(op, [x], [d] + kernel + stride + padding + dilation + [ceil], real, tame=tame)

    def convolve(self, x, shape):
        rng = self.rng
        d = len(shape) - (1 if len(shape) == 2 or (rng.chance(50) and len(shape) <= 4) else 2)
        channels, out = shape[len(shape) - d - 1], rng.within(1, 3)
        window, stride, padding, dilation = [], [], [], []
        for size in shape[len(shape) - d:]:
            padding.append(rng.within(0, 1))
            window.append(rng.within(1, min(3, size + 2 * padding[-1])))
            dilation.append(rng.within(1, 2) if size + 2 * padding[-1] > 2 * (window[-1] - 1) else 1)
            stride.append(rng.within(1, 2))
        if math.prod([out, channels] + window) > MOST:
            return
        sources = [x, self.of_shape([out, channels] + window)]
        self.push("conv", sources + ([self.of_shape([out])] if rng.chance(50) else []), [d] + stride + padding + dilation)


def drawn(rng, shape):
    return torch.tensor([rng.within(-2048, 2048) / 1024 for _ in range(math.prod(shape))], dtype=torch.float64).reshape(shape)


def results(program, rng):
    """x, dx, gy, y, dy, gx; None if PyTorch's numbers are too large to compare."""
    shapes = [numbers for op, _, numbers, _ in program.code if op == "input"]
    inputs = [drawn(rng, shape) for shape in shapes]
    tangents = [drawn(rng, shape) for shape in shapes]
    leaves = [x.clone().requires_grad_() for x in inputs]
    values = execute(program.code, program.outputs, leaves)
    seeds = [drawn(rng, list(y.shape)) for y in values]
    total = sum((y * gy).sum() for y, gy in zip(values, seeds))
    if total.requires_grad:
        gradients = torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
    else:
        gradients = [torch.zeros_like(x) for x in inputs]
    with forward_ad.dual_level():
        duals = execute(program.code, program.outputs, [forward_ad.make_dual(x, dx) for x, dx in zip(inputs, tangents)])
        pushed = [forward_ad.unpack_dual(y).tangent for y in duals]
        pushed = [torch.zeros_like(y) if t is None else t.clone() for y, t in zip(values, pushed)]
    every = [*values, *gradients, *pushed]
    if not all(torch.isfinite(t).all() and (t.abs() < 1e6).all() for t in every):
        return None
    return inputs, tangents, seeds, values, pushed, gradients


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "graph.txt")
    assert torch.__version__.startswith("2.13.0"), torch.__version__
    torch.set_num_threads(1)
    rng = Random(20260116)
    lines, count, seen = [], 0, {}
    while count < PROGRAMS:
        program = Program(rng)
        arrays = results(program, rng)
        if arrays is None:
            continue
        lines.append(f"program {count}")
        for op, sources, numbers, real in program.code:
            line = " ".join([op] + [f"#{i}" for i in sources])
            lines.append(line + (" : " + " ".join(map(str, numbers)) if numbers else "") + (f" = {real}" if real else ""))
            seen[op] = seen.get(op, 0) + 1
        lines.append("outputs " + " ".join(f"#{i}" for i in program.outputs))
        for name, tensors in zip(("x", "dx", "gy", "y", "dy", "gx"), arrays):
            for tensor in tensors:
                lines.append(" ".join([name] + [f"{v:.14g}" for v in tensor.detach().reshape(-1).tolist()]))
        count += 1
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
    print(f"{count} programs, {os.path.getsize(path)} bytes: " + ", ".join(f"{op} {n}" for op, n in sorted(seen.items())))


if __name__ == "__main__":
    main()
