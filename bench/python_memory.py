#!/usr/bin/env python3
"""How much memory a training step through a max pool takes at its peak: cenote.torch beside torch.nn.functional.

The step is forward and backward of a pool whose input is an intermediate result that nobody else holds, as in a network.
Its peak is the process's largest resident memory during the step (VmHWM, reset by /proc/self/clear_refs) less what was
resident before it, so it counts whatever any allocator hands out: tensors, what autograd keeps, and scratch of kernels.
Tensors are larger than what malloc keeps for later. Each candidate has a process of its own. `make bench-python` runs it.
"""

import argparse
import ctypes
import json
import math
import os
import re
import subprocess
import sys

# input, kernel, stride, padding: batches of the first pools of ResNet-50 and VGG-16, and of a later one of VGG-16
LAYERS = [
    ("resnet50 3x3 stride 2", (20, 64, 112, 112), 3, 2, 1),
    ("vgg16 2x2", (5, 64, 224, 224), 2, 2, 0),
    ("vgg16 2x2, later", (40, 256, 56, 56), 2, 2, 0),
]


def resident(which):
    with open("/proc/self/status") as status:
        return int(re.search(rf"{which}:\s+(\d+) kB", status.read())[1]) * 1024


def peak_of_step(library, layer):
    """Bytes at the peak, in this process."""
    import torch

    import cenote.torch

    _, shape, *arguments = LAYERS[layer]
    pool = (cenote.torch if library == "cenote" else torch.nn.functional).max_pool2d
    torch.set_num_threads(2)
    torch.manual_seed(0)

    def step(leaf):
        pool(leaf + 1, *arguments).sum().backward()  # what adds keeps nothing

    step(torch.randn(1, 1, 32, 32, requires_grad=True))  # what is made once is there
    leaf = torch.randn(shape, requires_grad=True)
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    before = resident("VmRSS")
    step(leaf)
    return resident("VmHWM") - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return print(json.dumps(peak_of_step(options.child[0], int(options.child[1]))))
    print(f"{'peak of a step, MiB':<26}{'input':>8}{'cenote':>8}{'torch':>8}{'ratio':>8}")
    ratios = []
    for number, (name, shape, *_) in enumerate(LAYERS):
        peaks = [
            json.loads(subprocess.check_output([sys.executable, os.path.abspath(__file__), "--child", library, str(number)]))
            for library in ("cenote", "torch")
        ]
        ratios.append(peaks[0] / peaks[1])
        sizes = [math.prod(shape) * 4, *peaks]
        print(f"{name:<26}" + "".join(f"{size / 2**20:>8.1f}" for size in sizes) + f"{ratios[-1]:>8.2f}")
    print(f"{'geometric mean':<50}{math.exp(sum(map(math.log, ratios)) / len(ratios)):>8.2f}")


if __name__ == "__main__":
    main()
