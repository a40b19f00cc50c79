#!/usr/bin/env python3
"""Whole programs against PyTorch: forward and backward of networks that are mostly pooling, in one run, taking turns, on
the same number of threads; and what a node of the graph costs besides its own work.

    graphs.py [--threads 1 2] [--seconds 2] [--folder build/release/bench] [--output FILE.json]

Speed is PyTorch's best time over cenote's. Memory is what a run holds at most besides x and the output's gradient: of cenote
what the program says before it runs, of PyTorch the storages that are alive, counted at every operation. The results, y and
the gradient by x, are in it; working memory is the rest. Values and gradients are compared before anything is measured.
"""

import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import time
import weakref

ROOT = pathlib.Path(__file__).resolve().parent.parent
NETWORKS = {
    "resnet": ("ResNet-18's pools: max 3x3 stride 2, then global average", (8, 64, 112, 112)),
    "unet": ("U-Net's encoder: max 2x2 four times on 256x256", (1, 64, 256, 256)),
    "sppf": ("SPPF: max 5x5 stride 1 three times, concatenated", (4, 256, 20, 20)),
}
CHAIN = 100  # nodes of `chain` in graph.cpp


def torch_network(name):
    import torch
    import torch.nn.functional as F

    def resnet(x):
        return F.adaptive_avg_pool2d(F.max_pool2d(x, 3, 2, 1), 1)

    def unet(x):
        for _ in range(4):
            x = F.max_pool2d(x, 2)
        return x

    def sppf(x):
        once = F.max_pool2d(x, 5, 1, 2)
        twice = F.max_pool2d(once, 5, 1, 2)
        return torch.cat([x, once, twice, F.max_pool2d(twice, 5, 1, 2)], 1)

    return {"resnet": resnet, "unet": unet, "sppf": sppf}[name]


def torch_peak(run, outside):
    """The most bytes that are alive at once in storages made by `run`; `outside` are not counted."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    alive, peak = {}, 0
    known = {t.untyped_storage().data_ptr() for t in outside}

    class Count(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            nonlocal peak
            out = function(*args, **(kwargs or {}))
            for t in out if isinstance(out, (tuple, list)) else (out,):
                if not isinstance(t, torch.Tensor) or t.untyped_storage().data_ptr() in known:
                    continue
                key = t.untyped_storage().data_ptr()
                alive.setdefault(key, [t.untyped_storage().nbytes(), 0])[1] += 1
                weakref.finalize(t, forget, key)
            peak = max(peak, sum(size for size, _ in alive.values()))
            return out

    def forget(key):
        if key in alive:
            alive[key][1] -= 1
            if alive[key][1] == 0:
                del alive[key]

    with Count():
        run()
    return peak


class Library:
    def __init__(self, folder):
        self.lib = ctypes.CDLL(str(pathlib.Path(folder) / "graph.so"))
        self.lib.cenote_graph_open.restype = ctypes.c_void_p
        self.lib.cenote_graph_open.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
        self.lib.cenote_graph_run.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int]
        self.lib.cenote_graph_peak_bytes.restype = ctypes.c_int64
        self.lib.cenote_graph_peak_bytes.argtypes = [ctypes.c_void_p]
        self.lib.cenote_graph_close.argtypes = [ctypes.c_void_p]

    def open(self, name, shape, threads):
        sizes = (ctypes.c_int64 * len(shape))(*shape)
        return self.lib.cenote_graph_open(name.encode(), sizes, len(shape), threads)


def best(seconds, *runs):
    """The best time of each, taking turns."""
    for run in runs:
        run()
    times = [float("inf")] * len(runs)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for i, run in enumerate(runs):
            start = time.perf_counter()
            run()
            times[i] = min(times[i], time.perf_counter() - start)
    return times


def measure(options, threads):
    import torch

    torch.set_num_threads(threads)
    library = Library(options.folder)
    results = []
    for name, (words, shape) in NETWORKS.items():
        network = torch_network(name)
        generator = torch.Generator().manual_seed(1)
        x = torch.randn(shape, generator=generator)
        gy = torch.randn(network(x).shape, generator=generator)
        leaf = x.clone().requires_grad_()

        def torch_run():
            leaf.grad = None
            y = network(leaf)
            y.backward(gy)
            return y

        handle = library.open(name, shape, threads)
        y, gx = torch.empty_like(gy), torch.empty_like(x)
        library.lib.cenote_graph_run(handle, x.data_ptr(), gy.data_ptr(), y.data_ptr(), gx.data_ptr(), 1)
        theirs = torch_run()
        assert torch.allclose(y, theirs.detach(), rtol=1e-5, atol=1e-6), name
        assert torch.allclose(gx, leaf.grad, rtol=1e-5, atol=1e-6), name
        del theirs
        leaf.grad = None
        peak = torch_peak(torch_run, [leaf, gy])
        run = lambda: library.lib.cenote_graph_run(handle, x.data_ptr(), gy.data_ptr(), None, None, 1)
        ours, torchs = best(options.seconds, run, torch_run)
        results.append({"network": name, "what": words, "shape": shape, "threads": threads, "cenote_seconds": ours,
                        "torch_seconds": torchs, "cenote_bytes": library.lib.cenote_graph_peak_bytes(handle),
                        "torch_bytes": peak, "result_bytes": 4 * (y.numel() + gx.numel())})
        library.lib.cenote_graph_close(handle)
    chain = library.open("chain", (1,), threads)
    one = torch.ones(1)
    times = 1000
    (seconds,) = best(options.seconds / 4, lambda: library.lib.cenote_graph_run(
        chain, one.data_ptr(), one.data_ptr(), None, None, times))
    library.lib.cenote_graph_close(chain)
    return {"torch": torch.__version__, "networks": results, "nanoseconds_per_node": 1e9 * seconds / times / CHAIN}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--folder", default=ROOT / "build" / "release" / "bench")
    parser.add_argument("--output")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(measure(options, options.child)))
        return 0
    measured = []
    for threads in options.threads:  # a process each, so that every library starts with the right number
        command = [sys.executable, __file__, "--child", str(threads), "--seconds", str(options.seconds), "--folder",
                   str(options.folder)]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "CENOTE_THREADS": str(threads)}
        measured.append(json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout))
    print("| forward and backward, f32 | threads | cenote, ms | PyTorch, ms | speed | cenote, MB | PyTorch, MB | memory | working |")
    print("|---|---|---|---|---|---|---|---|---|")
    for run in measured:
        for r in run["networks"]:
            print(f"| {r['what']}, {'x'.join(map(str, r['shape']))} | {r['threads']} | {1e3 * r['cenote_seconds']:.2f} "
                  f"| {1e3 * r['torch_seconds']:.2f} | {r['torch_seconds'] / r['cenote_seconds']:.1f}x "
                  f"| {r['cenote_bytes'] / 1e6:.1f} | {r['torch_bytes'] / 1e6:.1f} "
                  f"| {r['cenote_bytes'] / r['torch_bytes']:.2f} "
                  f"| {(r['cenote_bytes'] - r['result_bytes']) / (r['torch_bytes'] - r['result_bytes']):.2f} |")
    nodes = ", ".join(f"{run['nanoseconds_per_node']:.0f}" for run in measured)
    print(f"\nThe graph itself, forward and backward, per node: {nodes} ns. PyTorch {measured[0]['torch']}.")
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(measured, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
