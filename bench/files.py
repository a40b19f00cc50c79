#!/usr/bin/env python3
"""What pooling costs beside the files it reads and writes. `make bench-files` runs it.

How much of the time that one thread spends on a picture is pooling and not a codec's, for every operator, and
what the command takes from beginning to end beside the slower of two runs that pool nothing: one that reads the picture,
one that writes the result again. Then a large array of f32 beside `cp`, taking turns, with the command's peak memory.
"""

import argparse
import itertools
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPERATORS = ("max", "min", "average", "sum", "lp", "lp --p 3", "lp --p 2.5", "smooth-max --beta 0.1",
             "smooth-max --beta 2", "smooth-max --beta 10")
WINDOWS = ("-k 2", "-k 3 -s 2 -p 1")
PASSES = re.compile(r"read ([\d.]+) s, pool ([\d.]+) s, write ([\d.]+) s")

# A command's seconds and peak memory, by a small process: a child's peak counts its parent's at the time of its birth.
ALONE = """
import resource, subprocess, sys, time
begin = time.perf_counter()
subprocess.run(sys.argv[1:], check=True)
print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def pool(command, *words):
    """Runs `cenote pool` with these words, of which strings are split, and returns what it says and how long it took."""
    split = [part for word in words for part in (word.split() if isinstance(word, str) else [word])]
    begin = time.perf_counter()
    done = subprocess.run([command, "pool", *split], check=True, capture_output=True, text=True)
    return done.stderr, time.perf_counter() - begin


def photograph(command, folder, height, width):
    """The bundled photograph at the size of a camera's, between its pixels a plane, with a camera's noise."""
    small = folder / "small.npy"
    pool(command, "max", ROOT / "examples/data/coffee.png", "-o", small, "-k 1")
    pixels = np.load(small).astype(np.float32)
    rows = np.linspace(0, pixels.shape[0] - 1.001, height, dtype=np.float32)
    columns = np.linspace(0, pixels.shape[1] - 1.001, width, dtype=np.float32)
    r, c = rows.astype(int), columns.astype(int)
    along = (columns - c)[None, :, None]
    wide = pixels[:, c] * (1 - along) + pixels[:, c + 1] * along
    down = (rows - r)[:, None, None]
    large = wide[r] * (1 - down) + wide[r + 1] * down
    large += np.random.default_rng(0).normal(0, 2, large.shape).astype(np.float32)
    np.save(small, large.clip(0, 255).round().astype(np.uint8))
    for name in ("photograph.png", "photograph.tif"):
        pool(command, "max", small, "-o", folder / name, "-k 1 --channels-last")


def pictures(command, folder, rounds):
    print("| picture | operator | windows | pooling's share, one thread | elapsed beside no pooling, two threads |")
    print("|---|---|---|---|---|")
    for kind, operator, windows in itertools.product(("png", "tif"), OPERATORS, WINDOWS):
        picture, result = folder / f"photograph.{kind}", folder / f"result.{kind}"
        shares, elapsed, copying = [], [], []
        for _ in range(rounds):
            said, _ = pool(command, operator, picture, "-o", result, windows, "-t 1 -v")
            passes = [float(s) for s in PASSES.search(said).groups()]
            shares.append(passes[1] / sum(passes))
            elapsed.append(pool(command, operator, picture, "-o", result, windows, "-t 2")[1])
            # Windows of one cell pool nothing: the picture is read, and the result is written again.
            reading = pool(command, "max", picture, "-o", folder / "skipped.npy", "-k 1 -s 2 -t 2")[1]
            writing = pool(command, "max", result, "-o", folder / f"again.{kind}", "-k 1 -t 2")[1]
            copying.append(max(reading, writing))
        ratio = min(elapsed) / min(copying)
        print(f"| {kind} | {operator} | {windows} | {statistics.median(shares):.1%} | {ratio:.2f} |", flush=True)


def array(command, folder, gigabytes, rounds):
    large, result, copy = folder / "large.npy", folder / "result.npy", folder / "copy.npy"
    side, planes = 1024, 256
    random = np.random.default_rng(0).random((planes, side, side), np.float32)
    with large.open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (gigabytes * planes, side, side)})
        for _ in range(gigabytes):
            random.tofile(file)
    del random
    pooled, copied, peaks = [], [], []
    for _ in range(rounds):
        words = (command, "pool", "max", large, "-o", result, *"-k 2x2x2 --memory 256M -q".split())
        said = subprocess.run([sys.executable, "-c", ALONE, *words], check=True, capture_output=True, text=True).stdout
        seconds, kilobytes = map(float, said.split())
        pooled.append(seconds)
        peaks.append(kilobytes / 1024)
        begin = time.perf_counter()
        subprocess.run(["cp", large, copy], check=True)
        copied.append(time.perf_counter() - begin)
    print(f"\n{gigabytes} GB of f32, max 2x2x2, `--memory 256M`, {rounds} rounds in turn with cp")
    print(f"pooling {min(pooled):.2f} to {max(pooled):.2f} s, cp {min(copied):.2f} to {max(copied):.2f} s; "
          f"speed {min(copied) / min(pooled):.2f} of cp's; peak memory {max(peaks):.0f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default=str(ROOT / "build/release/cli/cenote"))
    parser.add_argument("--folder", help="where the files go for the time being (default: the system's)")
    parser.add_argument("--gigabytes", type=int, default=4, help="of the array (default 4)")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        folder = pathlib.Path(folder)
        photograph(arguments.command, folder, 3000, 4000)
        pictures(arguments.command, folder, arguments.rounds)
        array(arguments.command, folder, arguments.gigabytes, arguments.rounds)


if __name__ == "__main__":
    main()
