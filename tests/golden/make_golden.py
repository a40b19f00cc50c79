#!/usr/bin/env python3
"""Makes golden.bin: pooling results of PyTorch 2.13.0 on the CPU in f64, read by golden_test.cpp.

Usage: make_golden.py [output file]       (default: golden.bin beside this script; needs only torch)

The cases are drawn by a generator of this script's own, so every run makes the same ones. Max, winners and their
derivatives are exact; exp, log and pow may differ in the last bits between CPUs, well within what the test allows.

FORMAT. Little endian, no alignment.
  file    "CENOTEG1", u32 number of cases, the cases, "END!"
  case    u8 operator (0 max, 1 average, 2 adaptive max, 3 adaptive average, 4 Lp, 5 smooth max)
          u8 r = pooled axes, u8 b = 1 if there is a batch axis, u32 tags (bit i is TAGS[i])
          u8[b+1+r] input sizes, u8[b+1+r] output sizes
          adaptive:  u8[r] output_size, 0 standing for None
          otherwise: u8[r] kernel, u8[r] stride (all 0: not given), u8[r] low padding, u8[r] high padding,
                     u8[r] dilation, u8 ceil_mode
          average:   u8 count_include_pad, i8 divisor_override (0: none)
          Lp:        f64 p
          smooth:    f64 beta, u8 padding (0: zeros, 1: ignore)
          arrays x, dx, gy, y, dy = J dx, gx = J^T gy; of max also u8[outputs] winners, as flat indices
  array   u8 kind, then the elements: 0 i8 codes, 1 i16 codes, 2 f32, 3 f64; always the smallest that is exact.
          A code c means c/8, except the four largest: NaN (127 or 32767), +inf, -inf, -0.

WHAT PYTORCH SAYS AND WHAT docs/semantics.md SAYS. Left out, because PyTorch's answer is not the rule's:
  - Max over a window without a real tap (dilation stepping over the input): PyTorch gives -inf and an index outside
    the input; M5 says 0, "none" and no gradient.
  - Padding above half the *undilated* kernel: 2.13.0 rejects it in 1-D, 2-D and 3-D (max_pool2d and max_pool3d even
    have both checks); G6 allows half the effective kernel.
  - avg_pool3d with a kernel larger than the input without padding: rejected in 3-D only; G2 and G3 look at the padded
    input.
  - Lp of windows that overhang (ceil_mode): PyTorch takes the average of the taps that exist times the kernel's volume
    and so scales the norm up. Odd or fractional p with negative taps: it raises without the absolute value and gives
    NaN. All-zero windows: its VJP is 0 but its JVP is NaN. An infinite tap, and NaN in a cell that no window reads:
    the gradient there is NaN. p = 1 with a tap of 0: its gradient is 1, the sign of 0 is 0.
  - Smooth max with +inf, or with nothing but -inf: the gradient of logsumexp is NaN; S5 says uniform weights. (For
    beta < 0 the same with the signs turned round.)
Stored as it is, but the test looks at less of it:
  - The sign of a zero average with a negative divisor: PyTorch always gives +0, IEEE division (ours) -0.
Nothing else was found: overhang and divisors of averages, NaN, ties and infinite gradients of max agree.
Every operator here has forward mode (torch.autograd.forward_ad) in 2.13.0.
"""

import math
import os
import struct
import sys

import torch
import torch.autograd.forward_ad as forward_ad
import torch.nn.functional as F

NAN, INF = math.nan, math.inf
MAX, AVERAGE, ADAPTIVE_MAX, ADAPTIVE_AVERAGE, LP, SMOOTH = range(6)
ADAPTIVE = (ADAPTIVE_MAX, ADAPTIVE_AVERAGE)
SELECTING = (MAX, ADAPTIVE_MAX)

# How many cases of each operator, per rank.
CASES = {MAX: 460, AVERAGE: 310, ADAPTIVE_MAX: 160, ADAPTIVE_AVERAGE: 150, LP: 100, SMOOTH: 190}

# What a case has. The order is the file's; golden_test.cpp repeats it.
TAGS = [
    "batched", "unbatched", "stride default", "stride given", "no padding", "padding", "padding at the bound",
    "unequal padding", "dilation", "floor", "ceil", "overhang", "pad counted", "pad not counted", "divisor none",
    "divisor positive", "divisor negative", "adaptive divides", "adaptive does not divide", "adaptive larger than input",
    "adaptive None", "kernel larger than input", "axis of size 1", "NaN", "+inf", "-inf", "tie", "signed zeros",
    "gradient not finite", "zeros", "ignore", "negative beta",
]  # fmt: skip
BIT = {name: 1 << i for i, name in enumerate(TAGS)}
assert len(TAGS) == 32


class Random:
    """splitmix64: the same numbers from every version of Python."""

    def __init__(self, seed):
        self.state = seed

    def bits(self):
        mask = (1 << 64) - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    def within(self, low, high):
        return low + self.bits() % (high - low + 1)

    def choice(self, options):
        return options[self.bits() % len(options)]

    def chance(self, percent):
        return self.bits() % 100 < percent

    def unit(self):
        return (self.bits() >> 11) / (1 << 53)


# ---- geometry ------------------------------------------------------------------------------------------------------


class Windows:
    """One axis: which taps each output has, as positions in the padded input."""

    def __init__(self, n, kernel, stride, low, high, dilation, ceil):
        self.n, self.low, self.padded = n, low, n + low + high
        self.span = dilation * (kernel - 1) + 1
        room = self.padded - self.span
        if ceil:
            self.out = -(-room // stride) + 1
            if (self.out - 1) * stride >= n + low:
                self.out -= 1
        else:
            self.out = room // stride + 1
        starts = [o * stride for o in range(max(self.out, 0))]
        every = [[s + w * dilation for w in range(kernel)] for s in starts]
        self.taps = [[t for t in taps if t < self.padded] for taps in every]
        self.overhangs = self.taps != every

    def real(self, taps):
        return [t for t in taps if self.low <= t < self.low + self.n]

    def has_empty(self):
        return any(not self.real(taps) for taps in self.taps)


class Case:
    def tag(self, name, condition=True):
        if condition:
            self.tags |= BIT[name]


def draw_sizes(rng, rank, limit):
    """Batch (or none), channels and spatial sizes with a small product."""
    longest = {1: 24, 2: 8, 3: 5}[rank]
    while True:
        batch = [rng.within(1, 2)] if rng.chance(50) else []
        sizes = batch + [rng.within(1, 3)] + [1 if rng.chance(8) else rng.within(1, longest) for _ in range(rank)]
        if math.prod(sizes) <= limit and math.prod(sizes[-rank:]) >= rng.within(1, limit // 2):
            return sizes


def draw_sliding(rng, c, rank, limit):
    """Fills in a legal sliding geometry, or returns False."""
    c.sizes = draw_sizes(rng, rank, limit)
    longest = {1: 6, 2: 4, 3: 3}[rank]
    c.kernel = [rng.within(1, longest)] * rank if rng.chance(40) else [rng.within(1, longest) for _ in range(rank)]
    c.stride = [0] * rank if rng.chance(35) else [rng.within(1, 3) for _ in range(rank)]
    c.dilation = [1] * rank
    if c.op in (MAX, SMOOTH) and rng.chance(55):
        c.dilation = [rng.within(1, 3) for _ in range(rank)]
    c.low = c.high = [0] * rank
    if c.op != LP and rng.chance(60):
        bound = [k // 2 for k in c.kernel]
        c.low = c.high = bound if rng.chance(40) else [rng.within(0, b) for b in bound]
        if c.op == SMOOTH and rng.chance(50):  # built by hand, so the padding is as free as the core's
            c.low, c.high = [rng.within(0, 2) for _ in range(rank)], [rng.within(0, 2) for _ in range(rank)]
    c.ceil = rng.chance(50)
    spatial = c.sizes[-rank:]
    c.axes = [
        Windows(n, k, s or k, lo, hi, d, c.ceil)
        for n, k, s, lo, hi, d in zip(spatial, c.kernel, c.stride, c.low, c.high, c.dilation)
    ]
    if any(a.out < 1 for a in c.axes) or math.prod(c.sizes[:-rank] + [a.out for a in c.axes]) > limit:
        return False
    if c.op in SELECTING and any(a.has_empty() for a in c.axes):
        return False
    if c.op == LP and any(a.overhangs for a in c.axes):
        return False
    if c.op == AVERAGE and rank == 3 and any(k > a.n for k, a in zip(c.kernel, c.axes)):
        return False
    c.tag("stride given" if any(c.stride) else "stride default")
    c.tag("padding" if any(c.low + c.high) else "no padding")
    c.tag("padding at the bound", all(2 * lo in (k, k - 1) for lo, k in zip(c.low, c.kernel)) and any(c.low))
    c.tag("unequal padding", c.low != c.high)
    c.tag("dilation", any(d > 1 and k > 1 for d, k in zip(c.dilation, c.kernel)))
    c.tag("ceil" if c.ceil else "floor")
    c.tag("overhang", any(a.overhangs for a in c.axes))
    c.tag("kernel larger than input", any(a.span > a.n for a in c.axes))
    return True


def draw_adaptive(rng, c, rank, limit):
    c.sizes = draw_sizes(rng, rank, limit)
    spatial = c.sizes[-rank:]
    c.output = [rng.within(1, max(n + 2, 3)) if rng.chance(75) else rng.within(1, n) for n in spatial]
    if rng.chance(8):
        c.output = [1] * rank
    if rank > 1 and rng.chance(15):  # None: this axis keeps its size
        c.output[rng.within(0, rank - 1)] = 0
    sizes = [m or n for m, n in zip(c.output, spatial)]
    if math.prod(c.sizes[:-rank] + sizes) > limit:
        return False
    c.tag("adaptive None", 0 in c.output)
    c.tag("adaptive divides", all(n % m == 0 for n, m in zip(spatial, sizes)))
    c.tag("adaptive does not divide", any(n % m for n, m in zip(spatial, sizes)))
    c.tag("adaptive larger than input", any(m > n for n, m in zip(spatial, sizes)))
    return True


# ---- data ----------------------------------------------------------------------------------------------------------


def draw_values(rng, kind, count):
    """Numbers of a kind. All but "real" are eighths, so that sums of them are exact."""
    eighths = lambda reach: rng.within(-reach, reach) / 8
    zero = lambda: rng.choice([0.0, -0.0])
    draw = {
        "distinct": lambda: eighths(100),
        "ties": lambda: rng.choice([zero(), zero(), 1.0, 1.0, -1.0, 0.5]),
        "zeros": zero,
        "nan": lambda: NAN if rng.chance(20) else eighths(16),
        "special": lambda: rng.choice([NAN, INF, -INF, -INF, zero(), zero(), eighths(16), eighths(16), eighths(16)]),
        "infinite": lambda: rng.choice([INF, -INF, -INF, -INF, 1.0]),
        "minus infinity": lambda: -INF,
        "low": lambda: -INF if rng.chance(25) else eighths(16),
        "high": lambda: INF if rng.chance(25) else eighths(16),
        "all nan": lambda: NAN,
        "real": lambda: (rng.unit() - 0.5) * 2.0 ** rng.within(-3, 3),
        "positive": lambda: (1 + rng.within(0, 60)) / 8,
        "not negative": lambda: abs(eighths(30)) if rng.chance(80) else zero(),
        "gradient": lambda: eighths(24),
        "wild gradient": lambda: rng.choice([NAN, INF, -INF, zero(), eighths(24), eighths(24), eighths(24)]),
    }[kind]
    return [draw() for _ in range(count)]


def draw_kind(rng, c):
    if c.op in SELECTING:
        return rng.choice(["distinct"] * 5 + ["ties"] * 6 + ["zeros"] * 2 + ["special"] * 4 + ["nan"] * 2 +
                          ["infinite", "minus infinity", "all nan"])  # fmt: skip
    if c.op in (AVERAGE, ADAPTIVE_AVERAGE):
        return rng.choice(["distinct"] * 5 + ["ties"] * 2 + ["special"] * 2 + ["zeros", "nan", "low", "real"])
    if c.op == LP:
        if c.p == 1:
            return "positive"
        kinds = ["not negative", "not negative", "positive"]
        return rng.choice(kinds + ["distinct", "ties", "nan", "real"] * 2 if c.p % 2 == 0 else kinds)
    far = "low" if c.beta > 0 else "high"  # taps that vanish
    return rng.choice(["distinct"] * 3 + ["ties"] * 3 + ["real", "nan", far, far])


def tensor(values, sizes):
    return torch.tensor(values, dtype=torch.float64).reshape(sizes)


# ---- PyTorch -------------------------------------------------------------------------------------------------------


def smooth_max(c, x):
    """logsumexp(beta * taps) / beta. Taps that do not exist, and ignored padding, are -inf."""
    z = F.pad(c.beta * x, [p for a in reversed(range(c.rank)) for p in (c.low[a], c.high[a])],
              value=-INF if c.ignore else 0.0)  # fmt: skip
    lead = c.sizes[: -c.rank]
    z = torch.cat([z.reshape(*lead, -1), torch.full((*lead, 1), -INF, dtype=x.dtype)], dim=-1)
    outputs = [[0]]  # of every output: the flat indices of its taps
    for axis in c.axes:
        outputs = [[t * axis.padded + u for t in head for u in taps] for head in outputs for taps in axis.taps]
    widest = max(len(taps) for taps in outputs)
    table = torch.tensor([taps + [z.shape[-1] - 1] * (widest - len(taps)) for taps in outputs])
    return torch.logsumexp(z[..., table], dim=-1).reshape(*lead, *[a.out for a in c.axes]) / c.beta


def run(c, x):
    """The operator on x: values, and the winners of a maximum."""
    name = {MAX: "max_pool{}d_with_indices", AVERAGE: "avg_pool{}d", ADAPTIVE_MAX: "adaptive_max_pool{}d_with_indices",
            ADAPTIVE_AVERAGE: "adaptive_avg_pool{}d", LP: "lp_pool{}d", SMOOTH: ""}[c.op]  # fmt: skip
    pool = getattr(F, name.format(c.rank), None)
    stride = None
    if c.op not in ADAPTIVE and any(c.stride):
        stride = c.stride
    if c.op == MAX:
        return pool(x, c.kernel, stride, c.low, c.dilation, c.ceil)
    if c.op == AVERAGE:
        override = {} if c.divisor == 0 else {"divisor_override": c.divisor}  # 1-D has no such argument
        return pool(x, c.kernel, stride, c.low, c.ceil, c.count_include_pad, **override), None
    if c.op in ADAPTIVE:
        sizes = [m or None for m in c.output]
        return pool(x, sizes) if c.op == ADAPTIVE_MAX else (pool(x, sizes), None)
    if c.op == LP:
        one = c.rank == 1  # lp_pool1d takes plain numbers
        return pool(x, c.p, c.kernel[0] if one else c.kernel, stride[0] if one and stride else stride, c.ceil), None
    return smooth_max(c, x), None


def has_tie(c, x):
    """Some window reaches its maximum twice: a second look, with the first winner lowered, finds the same value."""
    y, winners = run(c, x)
    flat = x.reshape(*c.sizes[: -c.rank], -1)
    lead = math.prod(c.sizes[: -c.rank])
    values, where = flat.reshape(lead, -1), winners.reshape(lead, -1)
    for row in range(lead):
        for o in range(where.shape[1]):
            lowered = values.clone()
            lowered[row, where[row, o]] = -INF
            again = run(c, lowered.reshape(c.sizes))[0].reshape(lead, -1)[row, o]
            best = y.reshape(lead, -1)[row, o]
            if best != -INF and not best.isnan() and again == best:
                return True
    return False


def unread(c):
    """Cells of the input that no window reads."""
    real = [{t - a.low for taps in a.taps for t in a.real(taps)} for a in c.axes]
    mask = torch.ones(c.sizes, dtype=torch.bool)
    for axis, cells in enumerate(real):
        shape = [1] * len(c.sizes)
        shape[axis - c.rank] = -1
        mask &= torch.tensor([i in cells for i in range(c.sizes[axis - c.rank])]).reshape(shape)
    return ~mask


def make_case(rng, op, rank):
    while True:
        c = Case()
        c.op, c.rank, c.tags = op, rank, 0
        c.divisor, c.count_include_pad, c.ignore = 0, True, False
        limit = 60 if op in SELECTING else 40
        if not (draw_adaptive if op in ADAPTIVE else draw_sliding)(rng, c, rank, limit):
            continue
        if op == AVERAGE:
            c.count_include_pad = rng.chance(50)
            if rank > 1 and rng.chance(40):
                c.divisor = rng.choice([-7, -3, -2, -1, 1, 2, 3, 5, 9, 100])
            c.tag("pad counted" if c.count_include_pad else "pad not counted")
            c.tag("divisor none" if c.divisor == 0 else "divisor positive" if c.divisor > 0 else "divisor negative")
        if op == LP:
            c.p = rng.choice([2.0, 2.0, 4.0, 6.0, 1.0, 1.5, 3.0])
        if op == SMOOTH:
            c.beta = rng.choice([0.5, 1.0, 3.0, 10.0, -1.0, -2.5])
            c.ignore = rng.chance(50)
            if c.ignore and any(a.has_empty() for a in c.axes):
                continue
            c.tag("ignore" if c.ignore else "zeros")
            c.tag("negative beta", c.beta < 0)
        count = math.prod(c.sizes)
        x = tensor(draw_values(rng, draw_kind(rng, c), count), c.sizes)
        wild = op in SELECTING and rng.chance(8)
        dx = tensor(draw_values(rng, "wild gradient" if wild else "gradient", count), c.sizes)
        with torch.no_grad():
            probe = run(c, x)[0]
        if op == LP and bool((probe == 0).any()):
            continue
        if op == SMOOTH and bool(probe.isinf().any()):
            continue
        gy = tensor(draw_values(rng, "wild gradient" if wild else "gradient", probe.numel()), list(probe.shape))

        leaf = x.clone().requires_grad_(True)
        y, winners = run(c, leaf)
        (gx,) = torch.autograd.grad(y, leaf, gy)
        with forward_ad.dual_level():
            dy = forward_ad.unpack_dual(run(c, forward_ad.make_dual(x, dx))[0]).tangent
        if op == LP and bool((x.isnan() & unread(c)).any()):
            continue
        c.arrays = [x, dx, gy, y.detach(), dy, gx]
        c.winners = winners
        c.out = list(y.shape)
        assert c.out[-rank:] == ([m or n for m, n in zip(c.output, c.sizes[-rank:])] if op in ADAPTIVE else
                                 [a.out for a in c.axes])  # fmt: skip

        negative = torch.signbit(x)
        c.tag("batched" if len(c.sizes) == rank + 2 else "unbatched")
        c.tag("axis of size 1", 1 in c.sizes[-rank:])
        c.tag("NaN", bool(x.isnan().any()))
        c.tag("+inf", bool((x == INF).any()))
        c.tag("-inf", bool((x == -INF).any()))
        c.tag("signed zeros", bool(((x == 0) & negative).any() and ((x == 0) & ~negative).any()))
        c.tag("tie", op in SELECTING and has_tie(c, x))
        c.tag("gradient not finite", not bool(gy.isfinite().all()))
        return c


# ---- the file ------------------------------------------------------------------------------------------------------


def encode(values):
    flat = values.reshape(-1).tolist()
    for kind, letter, largest in ((0, "b", 127), (1, "h", 32767)):
        codes = []
        for v in flat:
            if v != v:
                codes.append(largest)
            elif abs(v) == INF:
                codes.append(largest - 1 if v > 0 else largest - 2)
            elif v == 0 and math.copysign(1, v) < 0:
                codes.append(largest - 3)
            elif v * 8 == int(v * 8) and -largest <= v * 8 < largest - 3:
                codes.append(int(v * 8))
            else:
                break
        if len(codes) == len(flat):
            return struct.pack(f"<B{len(codes)}{letter}", kind, *codes)
    single = torch.tensor(flat, dtype=torch.float64).to(torch.float32).tolist()
    if all(a == b or (a != a and b != b) for a, b in zip(single, flat)):
        return struct.pack(f"<B{len(flat)}f", 2, *flat)
    return struct.pack(f"<B{len(flat)}d", 3, *flat)


def record(c):
    data = struct.pack("<BBBI", c.op, c.rank, len(c.sizes) - c.rank - 1, c.tags) + bytes(c.sizes + c.out)
    if c.op in ADAPTIVE:
        data += bytes(c.output)
    else:
        data += bytes(c.kernel + c.stride + c.low + c.high + c.dilation + [c.ceil])
    if c.op == AVERAGE:
        data += struct.pack("<Bb", c.count_include_pad, c.divisor)
    if c.op == LP:
        data += struct.pack("<d", c.p)
    if c.op == SMOOTH:
        data += struct.pack("<dB", c.beta, c.ignore)
    data += b"".join(encode(a) for a in c.arrays)
    if c.op in SELECTING:
        data += bytes(c.winners.reshape(-1).tolist())
    return data


def main():
    if not torch.__version__.startswith("2.13.0"):
        sys.exit(f"make_golden.py: the golden cases are those of PyTorch 2.13.0, this is {torch.__version__}")
    torch.set_num_threads(1)
    default = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden.bin")
    path = sys.argv[1] if len(sys.argv) > 1 else default
    rng = Random(20)
    cases = [make_case(rng, op, rank) for op, count in CASES.items() for rank in (1, 2, 3) for _ in range(count)]
    data = b"CENOTEG1" + struct.pack("<I", len(cases)) + b"".join(record(c) for c in cases) + b"END!"
    with open(path, "wb") as file:
        file.write(data)
    print(f"{path}: {len(cases)} cases, {len(data)} bytes")
    for name, bit in BIT.items():
        print(f"  {sum(1 for c in cases if c.tags & bit):5}  {name}")


if __name__ == "__main__":
    main()
