"""What the end-to-end tests share: the binary, a scratch folder, and pooling written out in NumPy."""
import fcntl
import itertools
import math
import os
import pathlib
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

import numpy as np

CENOTE = os.environ["CENOTE"]
HERE = pathlib.Path(__file__).resolve().parent


def run(*arguments, **options):
    """Runs the binary; arguments may be numbers and paths."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([CENOTE, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def on_terminal(*arguments, feed=None, columns=80, **environment):
    """What the binary writes to a terminal of its own, which is its stdout and stderr."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([CENOTE, *map(str, arguments)], stdin=subprocess.PIPE, stdout=theirs, stderr=theirs,
                               env={**os.environ, "TERM": "xterm", **environment})
    os.close(theirs)
    if feed:
        feed(process.stdin)
    process.stdin.close()
    seen = b""
    while select.select([ours], [], [], 10)[0]:
        try:
            seen += os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
    process.wait()
    os.close(ours)
    return seen


class Scratch(unittest.TestCase):
    """A test with a folder of its own, `self.folder`."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.random = np.random.default_rng(20260101)

    def path(self, name):
        return self.folder / name

    def cenote(self, *arguments, **options):
        """Runs the binary and expects it to succeed in silence."""
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(done.stderr, b"")
        return done.stdout

    def refused(self, code, *arguments, **options):
        """Runs the binary, expects this exit code and one line on stderr, and returns the line."""
        done = run(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr.decode(errors="replace"))
        self.assertEqual(done.stdout, b"")
        line = done.stderr.decode()
        self.assertTrue(line.startswith("cenote: ") and line.endswith("\n") and line.count("\n") == 1, line)
        return line

    def pool(self, array, *arguments, **options):
        """An array through `cenote pool OP x.npy -o y.npy ...`; `arguments` begin with the operator."""
        np.save(self.path("x.npy"), array)
        operator, *rest = arguments
        self.cenote("pool", operator, self.path("x.npy"), "-o", self.path("y.npy"), *rest, **options)
        return np.load(self.path("y.npy"))

    def peak_memory(self, *arguments, **options):
        """Runs the binary in a process of its own, and returns the most memory that it had, in bytes."""
        code = ("import resource, subprocess, sys; "
                "done = subprocess.run(sys.argv[1:]); "
                "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr); sys.exit(done.returncode)")
        done = subprocess.run([sys.executable, "-c", code, CENOTE, *map(str, arguments)], stderr=subprocess.PIPE, **options)
        lines = done.stderr.decode().splitlines()
        self.assertEqual(done.returncode, 0, lines)
        return int(lines[-1]) * 1024

    def assert_same(self, got, expected):
        self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape))
        np.testing.assert_array_equal(got, expected)


def pooled(x, axes, kernel, reduce, stride=None, low=None, high=None, dilation=None, ceil=False):
    """reduce(taps, exists) for every output. `taps` are the real taps as f64 or integers, `exists` is how many taps lie
    in the padded input. Written for clarity: one output at a time."""
    count = len(axes)
    stride = stride or kernel
    low, high, dilation = low or [0] * count, high or [0] * count, dilation or [1] * count
    sizes = list(x.shape)
    for i, axis in enumerate(axes):
        room = x.shape[axis] + low[i] + high[i] - dilation[i] * (kernel[i] - 1) - 1
        outputs = (math.ceil(room / stride[i]) if ceil else room // stride[i]) + 1
        if ceil and (outputs - 1) * stride[i] >= x.shape[axis] + low[i]:
            outputs -= 1
        sizes[axis] = outputs
    out = np.empty(sizes, np.float64 if x.dtype.kind == "f" else object)
    for index in itertools.product(*map(range, sizes)):
        places = [[i] for i in index]
        exists = 1
        for i, axis in enumerate(axes):
            taps = [index[axis] * stride[i] + w * dilation[i] - low[i] for w in range(kernel[i])]
            exists *= sum(tap < x.shape[axis] + high[i] for tap in taps)
            places[axis] = [tap for tap in taps if 0 <= tap < x.shape[axis]]
        taps = x[np.ix_(*places)].ravel()
        out[index] = reduce([int(t) for t in taps] if x.dtype.kind in "iu" else taps.astype(np.float64), exists)
    return out


def rounded_mean(taps, divisor):
    """An integer average: exact, half to even."""
    from fractions import Fraction
    return round(Fraction(sum(taps), divisor))
