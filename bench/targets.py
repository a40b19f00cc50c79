"""What is demanded of cenote's speed, and whether a run shows it."""

import dataclasses
import re
from typing import Optional


@dataclasses.dataclass
class Target:
    text: str
    demanded: str
    measured: str = ""
    met: Optional[bool] = None


def shown(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}"


def most(text, limit, figures):
    """Every one of the named figures is at most `limit`."""
    there = [(name, value) for name, value in figures if value is not None]
    target = Target(text, f"at most {limit:g}")
    if there:
        target.measured = ", ".join(f"{name} {shown(value)}" for name, value in there)
        target.met = all(value <= limit for _, value in there)
    return target


def least(text, limit, figures):
    there = [(name, value) for name, value in figures if value is not None]
    target = Target(text, f"at least {limit:g}")
    if there:
        target.measured = ", ".join(f"{name} {shown(value)}".strip() for name, value in there)
        target.met = all(value >= limit for _, value in there)
    return target


def quotient(a, b):
    return a / b if a and b else None


def all_targets(r):
    def memcpy(text, limit, names, verb="forward"):
        return most(text, limit, [(f"`{n}`", r.ratio(n, verb)) for n in names.split()])

    out = [
        memcpy("max 2x2 and 3x3 stride 2, 3-D 2x2x2, times memcpy", 1.1,
               "vgg_k2s2 resnet_stem med_max_k2 vgg_k2s2_cl resnet_stem_cl med_max_k2_cl"),
        memcpy("max 3x3 stride 1", 1.7, "incep_k3s1 incep_k3s1_cl"),
        memcpy("average 3x3 stride 1", 1.7, "avg3_incl avg3_excl avg3_incl_cl avg3_excl_cl"),
        memcpy("average 2x2 stride 2", 1.3, "densenet_tr densenet_tr_cl"),
        memcpy("global 7x7", 1.2, "gavg7 gmax7 gavg7_cl gmax7_cl"),
        memcpy("adaptive 13 to 7", 4.5, "adapt13_7"),
        memcpy("max 5x5 stride 1 on 20x20", 2.6, "spp_k5 spp_k5_cl"),
        memcpy("max 9x9 and 13x13 stride 1 on 20x20", 6, "spp_k9 spp_k13 spp_k9_cl spp_k13_cl"),
        memcpy("max 31x31 and 63x63 on 512x512", 4.5, "big_max31 big_max63"),
        memcpy("average 31x31 and 63x63 on 512x512", 10, "big_avg31 big_avg63"),
        memcpy("u8 max 3x3 stride 2", 2, "resnet_stem_u8 resnet_stem_u8cl resnet_stem_s8"),
    ]
    single = [n for n in r.names("entries") if r.problems[n].op == "max" and r.problems[n].taps <= 256
              and r.problems[n].group == "entries" and n != "tiny_k2"]
    out.append(most("forward with one-byte winners, times the same without", 1.7, [
        (f"`{n}`", quotient(r.seconds(n, "winners"), r.seconds(n))) for n in single]))
    out += [
        memcpy("VJP of max without overlap, times memcpy", 1.2, "vgg_k2s2 vgg_k2s2_cl audio_max_k4 med_max_k2", "vjp"),
        memcpy("VJP of max 3x3 stride 1", 4.5, "incep_k3s1 incep_k3s1_cl", "vjp"),
        memcpy("VJP of average", 2, "avg3_incl avg3_excl densenet_tr gavg7 med_avg_k2 avg3_incl_cl gavg7_cl", "vjp"),
        most("cost of a 127x127 window, times that of a 7x7 one", 1.6, [
            (f"{op} {verb}", quotient(r.seconds(f"sweep_{op}_k127", verb), r.seconds(f"sweep_{op}_k7", verb)))
            for op in ("max", "avg") for verb in ("forward", "winners", "vjp")]),
        most("smooth max, times max of the same geometry", 6, [
            (f"`{a}`", quotient(r.seconds(a), r.seconds(b))) for a, b in (
                ("smooth_k3s1_b1", "hard_k3s1"), ("smooth_k3s1_b10", "hard_k3s1"), ("smooth_k2s2", "hard_k2s2"),
                ("smooth_k31", "big_max31"))]),
        least("smooth max over PyTorch's unfold and logsumexp", 20, [
            (f"`{n}` {verb}", r.gain(n, verb, 1, "torch")) for n in r.names("smooth") if n.startswith("smooth")
            for verb in ("forward", "vjp")]),
    ]
    out += threads(r)
    for text, limit, verb, peer in (
            ("geometric mean over the best peer, forward", 3, "forward", None),
            ("geometric mean over PyTorch, forward", 15, "forward", "torch"),
            ("geometric mean over PyTorch, backward", 2, "vjp", "torch"),
            ("geometric mean over PyTorch, forward mode", 10, "jvp", "torch")):
        out.append(least(text, limit, [("", r.mean_gain(verb, 1, peer)[0])]))
    out += [fastest(r, threads) for threads in r.threads]
    out += [memory(r)]
    for text, limit, verb in (("call on 8x8 with a kept plan, ns", 150, "forward"),
                              ("call on 8x8 without, ns", 500, "forward_resolved")):
        out.append(most(text, limit, [
            (f"`{n}`", (s := r.seconds(n, verb)) and s * 1e9) for n in r.names("overhead")]))
    return out


def last_level_cache(r):
    text = r.data["machine"].get("L3 cache", "")
    found = re.match(r"([\d.]+) ([KMG])iB", text)
    return float(found[1]) * {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[found[2]] if found else 0


def threads(r):
    def speedup(n, verb="forward"):
        return quotient(r.seconds(n, verb, "cenote", 1), r.seconds(n, verb, "cenote", 2))

    beyond = last_level_cache(r)
    candidates = [(n, v) for n in r.names("entries", "plane") for v in ("forward", "vjp") if (n, v, 1) in r.rows]
    text = "two threads over one, beyond the last-level cache, not at memory speed"
    chosen = [(n, v) for n, v in candidates if r.rows[n, v, 1]["bytes"] > beyond]
    if not chosen:  # a cache larger than every problem
        text = "two threads over one, above 8 MB (the last-level cache holds every problem), not at memory speed"
        chosen = [(n, v) for n, v in candidates if r.rows[n, v, 1]["bytes"] > 8e6]
    out = [least(text, 1.7, [(f"`{n}` {v}", speedup(n, v)) for n, v in chosen if (r.ratio(n, v) or 0) > 1.1])]
    for shape in ("max_k3s2", "avg_k3s2", "max_k31", "avg_k31"):
        a, b = speedup(f"plane_{shape}"), speedup(f"batch_{shape}")
        target = Target(f"a 4096x4096 plane scales like a batch, {shape.replace('_', ' ')}", "at least 0.9 of it")
        if a and b:
            target.measured, target.met = f"plane {a:.2f}, batch {b:.2f}", a >= 0.9 * b
        out.append(target)
    return out


def fastest(r, count):
    target = Target(f"faster than every peer on every entry, {count} thread{'s' * (count > 1)}", "all")
    gains = [(r.gain(n, v, count), n, v) for n in r.names("entries") for v in ("forward", "winners", "vjp", "jvp")]
    gains = sorted(g for g in gains if g[0])
    if gains:
        slower = [g for g in gains if g[0] < 1]
        target.met = not slower
        target.measured = f"{len(gains) - len(slower)} of {len(gains)}"
        if slower:
            target.measured += "; behind: " + ", ".join(f"`{n}` {v} {g:.2f}" for g, n, v in slower[:8])
            target.measured += ", ..." if len(slower) > 8 else ""
    return target


def memory(r):
    target = Target("bytes per output kept for the VJP of max, up to 256 taps", "1")
    found = {}
    for n in r.names("entries", "more"):
        row = r.rows.get((n, "vjp", 1))
        p = r.problems[n]
        if row and p.op == "max" and p.taps <= 256 and "bytes_kept" in row["candidates"].get("cenote", {}):
            found[n] = row["candidates"]["cenote"]["bytes_kept"] / (row["outputs_bytes"] / p.type.itemsize)
    if found:
        target.measured = f"at most {max(found.values()):.3g} on {len(found)} problems"
        target.met = max(found.values()) <= 1
    return target
