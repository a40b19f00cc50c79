#!/usr/bin/env python3
"""Writes the tables and the chart from results.json: bench/report.py docs/benchmark"""

import json
import math
import pathlib
import sys

import chart
import targets
from problem import parse_line

COLUMNS = ("torch", "onnxruntime", "onednn", "xnnpack", "opencv", "jax")
TITLES = {"cenote": "cenote", "torch": "PyTorch", "onnxruntime": "ONNX Runtime", "onednn": "oneDNN",
          "xnnpack": "XNNPACK", "opencv": "OpenCV", "jax": "JAX", "onednn*": "oneDNN, blocked"}
VERBS = {"forward": "Forward", "winners": "Forward that keeps what the VJP needs", "vjp": "VJP from what was kept",
         "vjp_from_input": "VJP from the input, nothing kept", "jvp": "Forward and JVP"}


class Results:
    """The figures of a run, by problem, verb, candidate and threads."""

    def __init__(self, data):
        self.data = data
        self.rows = {(r["problem"], r["verb"], r["threads"]): r for r in data["rows"]}
        self.problems = {}
        for row in data["rows"]:
            self.problems.setdefault(row["problem"], parse_line(row["group"], row["line"]))
        self.threads = sorted({r["threads"] for r in data["rows"]})

    def names(self, *groups):
        return [name for name, p in self.problems.items() if p.group in groups]

    def seconds(self, problem, verb="forward", peer="cenote", threads=1):
        row = self.rows.get((problem, verb, threads))
        return row["candidates"].get(peer, {}).get("seconds") if row else None

    def ratio(self, problem, verb="forward", peer="cenote", threads=1):
        """In units of memcpy."""
        taken, unit = self.seconds(problem, verb, peer, threads), self.seconds(problem, verb, "memcpy", threads)
        return taken / unit if taken and unit else None

    def best_peer(self, problem, verb="forward", threads=1):
        """(name, seconds) of the fastest peer in the same layout."""
        found = [(self.seconds(problem, verb, peer, threads), peer) for peer in COLUMNS]
        found = [f for f in found if f[0]]
        return (min(found)[1], min(found)[0]) if found else (None, None)

    def gain(self, problem, verb="forward", threads=1, peer=None):
        own = self.seconds(problem, verb, "cenote", threads)
        other = self.seconds(problem, verb, peer, threads) if peer else self.best_peer(problem, verb, threads)[1]
        return other / own if own and other else None

    def mean_gain(self, verb, threads=1, peer=None, groups=("entries",)):
        """(geometric mean, number of problems)."""
        gains = [g for g in (self.gain(n, verb, threads, peer) for n in self.names(*groups)) if g]
        return (math.exp(sum(map(math.log, gains)) / len(gains)), len(gains)) if gains else (None, 0)


def number(value):
    if value is None:
        return ""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def pair(results, make):
    """One cell for all numbers of threads."""
    cells = [number(make(threads)) for threads in results.threads]
    return " / ".join(cell or "–" for cell in cells) if any(cells) else ""


def head(results):
    data, machine = results.data, results.data["machine"]
    caches = ", ".join(f"{k} {v}" for k, v in machine.items() if k.endswith("cache"))
    versions = data.get("versions", {})
    packages = data.get("packages", {})
    shown = [f"PyTorch {versions.get('torch')}", f"ONNX Runtime {versions.get('onnxruntime')}",
             f"oneDNN {versions.get('onednn')}", f"XNNPACK as in executorch {packages.get('executorch')}",
             f"OpenCV {versions.get('opencv')}", f"JAX {versions.get('jax')}"]
    lines = ["# Benchmark", "", "Written by `bench/report.py` from `results.json`, which `make bench` measures.", ""]
    if data.get("quick"):
        lines += ["**A quick run over a few problems: it shows that everything works, no more.**", ""]
    lines += [f"- {data['date']}, {machine['cpu']}, {machine['cores']} cores, {caches}; {machine['compiler']};"
              f" commit {machine['commit']}; `{data['command']}`, {data.get('wall_seconds', 0) // 60} minutes",
              f"- cenote {versions.get('cenote')}; " + ", ".join(s for s in shown if not s.endswith("None")),
              "- The unit is a memcpy that moves the same bytes on as many threads in the same run: forward x and y, VJP gy "
              "and gx, JVP x, dx, y and dy. 1.00 is the speed of memory; lower is better.",
              "- Candidates take turns, each after a call that is not counted, so that all of them and memcpy find the caches as "
              "they leave them; the best of many rounds counts; each peer in its fastest way, checked against "
              "cenote's result first. Pairs are " + " / ".join(f"{t} thread{'s' * (t > 1)}" for t in results.threads) +
              ". Gains are over the fastest peer in the same layout.",
              "- PyTorch, ONNX Runtime, OpenCV and JAX are called from Python, the others from C++. oneDNN's package runs "
              "on a SYCL queue: what a call costs before it computes is the figure of `tiny_k2`, and it weighs on every "
              "entry of less than a hundred microseconds.", ""]
    for name, reason in data.get("absent", {}).items():
        lines += [f"- {TITLES.get(name, name)} did not take part: {reason}", ""]
    return lines + ["![Forward and VJP of every entry in units of memcpy](chart.svg)", ""]


def target_section(results):
    rows = []
    for target in targets.all_targets(results):
        met = "" if target.met is None else ("yes" if target.met else "**no**")
        rows.append((target.text, target.demanded, target.measured or "not measured", met))
    decided = [t for t in targets.all_targets(results) if t.met is not None]
    lines = ["## Targets", "", f"{sum(t.met for t in decided)} of {len(decided)} are met. One thread unless it says "
             "otherwise.", ""]
    return lines + table(("target", "demanded", "measured", "met"), rows)


def verb_section(results, verb, groups):
    names = [n for n in results.names(*groups) if any((n, verb, t) in results.rows for t in results.threads)]
    peers = [peer for peer in (*COLUMNS, "onednn*") if any(
        results.seconds(n, verb, peer, t) for n in names for t in results.threads)]
    rows = []
    for name in names:
        best = results.best_peer(name, verb)[0]
        gain = pair(results, lambda t: results.gain(name, verb, t))
        unit = results.seconds(name, verb, "memcpy", results.threads[0])
        rows.append([f"`{name}`", number(unit * 1e6) if unit else "",
                     "**" + pair(results, lambda t: results.ratio(name, verb, "cenote", t)) + "**"] +
                    [pair(results, lambda t: results.ratio(name, verb, peer, t)) for peer in peers] +
                    [f"{gain} ({TITLES[best]})" if best else ""])
    if not rows:
        return []
    heads = ["problem", "memcpy, µs", "cenote"] + [TITLES[p] for p in peers] + ["gain"]
    lines = [f"### {VERBS[verb]}", ""]
    return lines + table(heads, rows)


def mean_section(results):
    rows = []
    for text, verb, peer in (("best peer, forward", "forward", None), ("best peer, winners", "winners", None),
                             ("best peer, VJP", "vjp", None), ("best peer, JVP", "jvp", None),
                             ("PyTorch forward", "forward", "torch"), ("PyTorch backward", "vjp", "torch"),
                             ("PyTorch forward mode", "jvp", "torch")):
        cells = []
        for threads in results.threads:
            mean, count = results.mean_gain(verb, threads, peer)
            cells.append(f"{number(mean)} ({count})" if mean else "")
        rows.append([text, *cells])
    lines = ["## Geometric means of the gain over the entries", "", "In brackets the number of entries that have both.", ""]
    return lines + table(["over", *[f"{t} thread{'s' * (t > 1)}" for t in results.threads]], rows)


def sweep_section(results):
    names = results.names("sweep")
    if not names:
        return []
    lines = ["## Window sweep", "", "A 512x512 plane, stride 1, as much padding as keeps the output; nanoseconds per "
             "output, one thread.", ""]
    sizes = sorted({results.problems[n].kernel[0] for n in names})
    rows = []
    for op in ("max", "avg"):
        for verb in ("forward", "winners", "vjp"):
            for peer in ("cenote", "opencv"):
                cells = [results.seconds(f"sweep_{op}_k{k}", verb, peer) for k in sizes]
                if any(cells):
                    rows.append([f"{op} {verb}", TITLES[peer]] + [number(c and c * 1e9 / 512**2) for c in cells])
    return lines + table(["", "", *[f"{k}x{k}" for k in sizes]], rows)


def overhead_section(results):
    names = results.names("overhead")
    if not names:
        return []
    rows = []
    for name in names:
        for verb, text in (("forward", "plan kept"), ("forward_unplanned", "geometry kept"),
                           ("forward_resolved", "nothing kept")):
            rows.append([f"`{name}`", f"cenote, {text}"] +
                        [number((results.seconds(name, verb, "cenote", t) or 0) * 1e9) for t in results.threads])
        for peer in COLUMNS:
            if results.seconds(name, "forward", peer):
                rows.append([f"`{name}`", TITLES[peer]] +
                            [number((results.seconds(name, "forward", peer, t) or 0) * 1e9) for t in results.threads])
    lines = ["## Call overhead", "", "One call on an 8x8 input, in nanoseconds.", ""]
    return lines + table(["problem", "call", *[f"{t} thread{'s' * (t > 1)}" for t in results.threads]], rows)


def memory_section(results):
    rows = []
    for name in results.names("entries", "more"):
        row = results.rows.get((name, "vjp", results.threads[0]))
        if not row or results.problems[name].op != "max":
            continue
        outputs = row["outputs_bytes"] / results.problems[name].type.itemsize
        cells = [row["candidates"].get(peer, {}).get("bytes_kept") for peer in ("cenote", "torch", "onednn", "jax")]
        rows.append([f"`{name}`"] + ["" if c is None else f"{c / outputs:.3g}" for c in cells])
    if not rows:
        return []
    lines = ["## Memory kept for the VJP of max", "", "Bytes per output.", ""]
    return lines + table(["problem", "cenote", "PyTorch", "oneDNN", "JAX"], rows)


def network_section(results):
    lines = []
    for group, title in (("networks", "layers of known networks"), ("synthetic", "shapes of oneDNN's test list")):
        names = results.names(group)
        rows = []
        for verb in ("forward", "vjp"):
            for threads in results.threads:
                gains = sorted((g, n) for n in names if (g := results.gain(n, verb, threads)))
                if gains:
                    mean, _ = results.mean_gain(verb, threads, None, (group,))
                    rows.append([verb, threads, len(gains), number(mean), sum(g < 1 for g, _ in gains),
                                 ", ".join(f"`{n}` {number(g)}" for g, n in gains[:3])])
        if rows:
            lines += [f"### The {len(names)} {title}", ""]
            lines += table(("verb", "threads", "compared", "geometric mean of the gain", "peer faster", "smallest"), rows)
    return ["## Networks", "", "Every figure is in `results.json`.", "", *lines] if lines else []


def left_out_section(results):
    reasons = {}
    for row in results.data["rows"]:
        for peer, reason in row["left_out"].items():
            if row["group"] in ("entries", "more", "smooth", "plane"):
                reasons.setdefault((peer, reason), set()).add(row["problem"])
    rows = [(TITLES.get(peer, peer), reason.replace("|", "\\|"),
             len(problems) if len(problems) > 3 else ", ".join(f"`{n}`" for n in sorted(problems)))
            for (peer, reason), problems in sorted(reasons.items())]
    return ["## Who does not take part where", ""] + table(("peer", "reason", "problems"), rows) if rows else []


def write(folder):
    folder = pathlib.Path(folder)
    results = Results(json.loads((folder / "results.json").read_text()))
    lines = head(results) + target_section(results) + mean_section(results)
    for title, groups in (("Entries", ("entries",)), ("Other types and layouts", ("more",)), ("Smooth maximum", ("smooth",)),
                          ("A single plane and a batch of as many cells", ("plane",))):
        section = [line for verb in VERBS for line in verb_section(results, verb, groups)]
        if section:
            lines += [f"## {title}", "", "Times memcpy.", "", *section]
    lines += sweep_section(results) + overhead_section(results) + memory_section(results) + network_section(results)
    lines += left_out_section(results)
    (folder / "README.md").write_text("\n".join(lines).rstrip() + "\n")
    (folder / "chart.svg").write_text(chart.draw(results, TITLES))


if __name__ == "__main__":
    write(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent / "docs/benchmark")
