"""A problem of the benchmark: one line of problems.txt or networks.txt, its sizes, and its arrays."""

import dataclasses
import math
import pathlib

import ml_dtypes
import numpy as np

TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
         "u8": np.uint8, "i8": np.int8, "i16": np.int16}
VERBS = ("forward", "winners", "vjp", "vjp_from_input", "jvp")


class LeftOut(Exception):
    """Why a candidate does not take part in a problem."""


@dataclasses.dataclass(frozen=True)
class Problem:
    group: str
    name: str
    op: str  # max, avg (padding counts), avgx (it does not), smax
    dtype: str
    layout: str  # nchw or nhwc, for any number of pooled axes
    shape: tuple  # batch, channels, space: in this order for both layouts
    windows: str  # sliding, adaptive or global
    kernel: tuple  # of adaptive windows: the output size
    stride: tuple
    low: tuple
    high: tuple
    dilation: tuple
    beta: float = 0.0
    verbs: tuple = ()
    peers: tuple = ()
    line: str = ""

    @property
    def space(self):
        return self.shape[2:]

    @property
    def rank(self):
        return len(self.space)

    @property
    def out_space(self):
        if self.windows == "adaptive":
            return self.kernel
        return tuple((n + lo + hi - d * (k - 1) - 1) // s + 1 for n, lo, hi, d, k, s in
                     zip(self.space, self.low, self.high, self.dilation, self.kernel, self.stride))

    @property
    def channels_last(self):
        return self.layout == "nhwc"

    def ordered(self, space):
        """A shape in memory order."""
        n, c = self.shape[:2]
        return (n, *space, c) if self.channels_last else (n, c, *space)

    @property
    def in_shape(self):
        return self.ordered(self.space)

    @property
    def out_shape(self):
        return self.ordered(self.out_space)

    @property
    def type(self):
        return np.dtype(TYPES[self.dtype])

    @property
    def in_bytes(self):
        return math.prod(self.in_shape) * self.type.itemsize

    @property
    def out_bytes(self):
        return math.prod(self.out_shape) * self.type.itemsize

    def bytes_moved(self, verb):
        """What the verb reads and writes at least: the measure of the memcpy it is compared with."""
        return (self.in_bytes + self.out_bytes) * (2 if verb == "jvp" else 1)

    @property
    def taps(self):
        return math.prod(self.kernel)

    @property
    def padded(self):
        return any(self.low) or any(self.high)

    def torch_padding(self):
        """(padding, ceil_mode) of frameworks whose padding is symmetric, or the reason why there is none."""
        for ceil in (False, True):
            sizes = []
            for n, lo, d, k, s in zip(self.space, self.low, self.dilation, self.kernel, self.stride):
                room = n + 2 * lo - d * (k - 1) - 1
                size = (-(-room // s) if ceil else room // s) + 1
                if ceil and (size - 1) * s >= n + lo:
                    size -= 1
                sizes.append(size)
            if tuple(sizes) == tuple(self.out_space) and not (ceil and self.op in ("avg", "smax")):
                if any(lo > ((k - 1) * d + 1) // 2 for lo, k, d in zip(self.low, self.kernel, self.dilation)):
                    raise LeftOut("padding above half the window")
                return self.low, ceil
        raise LeftOut("no symmetric padding means the same")

    def allowed(self, verb):
        if verb == "winners" and self.op != "max":
            return False
        if verb != "forward" and verb != "winners" and not np.issubdtype(self.type, np.inexact) and self.dtype != "bf16":
            return False
        return True


def numbers(text):
    return tuple(int(n) for n in text.split("x"))


def parse(path):
    """The problems of a file. Lines are described in the head of problems.txt."""
    group, problems, names = "", [], set()
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        if line.startswith("["):
            group = line.strip("[]")
            continue
        try:
            problem = parse_line(group, line)
        except (ValueError, KeyError) as error:
            raise SystemExit(f"{path}:{number}: {error}: {line}")
        if problem.name in names:
            raise SystemExit(f"{path}:{number}: the name {problem.name} is there already")
        names.add(problem.name)
        problems.append(problem)
    return problems


def parse_line(group, line):
    name, op, dtype, layout, shape, kernel, *rest = line.split()
    shape = numbers(shape)
    rank = len(shape) - 2
    options = dict(entry.split("=", 1) for entry in rest)
    windows = "sliding"
    if kernel == "global":
        windows, sizes = "global", shape[2:]
    elif kernel.startswith("to:"):
        windows, sizes = "adaptive", numbers(kernel[3:])
    else:
        sizes = numbers(kernel)
    pads = [entry.split(",") for entry in options.pop("p", "x".join(["0"] * rank)).split("x")]
    problem = Problem(
        group=group, name=name, op=op, dtype=dtype, layout=layout, shape=shape, windows=windows, kernel=sizes,
        stride=numbers(options.pop("s")) if "s" in options else ((1,) * rank if windows == "adaptive" else sizes),
        low=tuple(int(p[0]) for p in pads), high=tuple(int(p[-1]) for p in pads),
        dilation=numbers(options.pop("d")) if "d" in options else (1,) * rank,
        beta=float(options.pop("beta", 0)), verbs=tuple(options.pop("verbs").split(",")) if "verbs" in options else (),
        peers=tuple(options.pop("peers").split(",")) if "peers" in options else (), line=line)
    if options:
        raise ValueError(f"unknown option {next(iter(options))}")
    if op not in ("max", "avg", "avgx", "smax") or layout not in ("nchw", "nhwc") or dtype not in TYPES:
        raise ValueError("unknown operator, layout or type")
    for entries in (problem.kernel, problem.stride, problem.low, problem.dilation):
        if len(entries) != rank:
            raise ValueError("a list is not as long as the space")
    return problem


def aligned(shape, dtype):
    """An array on a page boundary, every page touched."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    raw = np.zeros(size + 8192, np.uint8)
    raw[:] = 1
    start = -raw.ctypes.data % 4096
    return raw[start:start + size].view(dtype).reshape(shape)


def random(shape, dtype, seed):
    dtype = np.dtype(dtype)
    generator = np.random.default_rng(seed)
    out = aligned(shape, dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        out[...] = generator.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
    elif dtype == np.float64:
        out[...] = generator.standard_normal(shape)
    else:
        out[...] = generator.standard_normal(shape, dtype=np.float32).astype(dtype)
    return out


class Arrays:
    """The inputs of a problem, made when they are asked for, and what cenote makes of them."""

    def __init__(self, problem):
        self.problem = problem
        self.made = {}

    def get(self, name):
        p = self.problem
        if name not in self.made:
            shape = p.in_shape if name in ("x", "dx", "gx") else p.out_shape
            if name in ("x", "dx", "gy"):
                self.made[name] = random(shape, p.type, {"x": 1, "dx": 2, "gy": 3}[name])
            else:
                self.made[name] = aligned(shape, p.type)
        return self.made[name]

    x = property(lambda self: self.get("x"))
    dx = property(lambda self: self.get("dx"))
    gy = property(lambda self: self.get("gy"))


def tolerance(problem):
    if problem.type.kind in "iu":
        return 0.0 if problem.op == "max" else 1.0  # peers round a mean in other ways
    return {"f32": 1e-4, "f64": 1e-9, "f16": 2e-2, "bf16": 1e-1}[problem.dtype]


def disagreement(got, want):
    """The largest difference; between floating-point numbers of size 1 and more, a relative one."""
    whole = np.asarray(want).dtype.kind in "iu"
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if got.shape != want.shape:
        return math.inf
    worst = 0.0
    for begin in range(0, got.size, 1 << 22):
        a, b = got.reshape(-1)[begin:begin + (1 << 22)], want.reshape(-1)[begin:begin + (1 << 22)]
        worst = max(worst, float(np.max(np.abs(a - b) / (1 if whole else np.maximum(1, np.abs(b))), initial=0.0)))
    return worst
