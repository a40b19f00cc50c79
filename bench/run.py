#!/usr/bin/env python3
"""The benchmark: cenote and its peers on a list of problems, in units of memcpy. `make bench` runs it; see --help.

Each number of threads is a process of its own, so that every library starts with the right number. Within a problem
the candidates take turns, and the best time of each counts. Everything measured goes to docs/benchmark/.
"""

import argparse
import datetime
import gc
import importlib
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

PEERS = {  # in the order of the tables: module, class
    "cenote": ("peers.native", "Cenote"),
    "memcpy": ("peers.native", "Memcpy"),
    "torch": ("peers.pytorch", "PyTorch"),
    "onnxruntime": ("peers.onnx_runtime", "OnnxRuntime"),
    "onednn": ("peers.native", "OneDnn"),
    "xnnpack": ("peers.native", "Xnnpack"),
    "opencv": ("peers.opencv", "OpenCv"),
    "jax": ("peers.jax_xla", "Jax"),
}
# What a section asks for: verbs, peers beside cenote and memcpy, and the share of --seconds that a candidate gets.
ALL = ("torch", "onnxruntime", "onednn", "xnnpack", "opencv", "jax")
SECTIONS = {
    "entries": (("forward", "winners", "vjp", "vjp_from_input", "jvp"), ALL, 1.0),
    "more": (("forward", "winners", "vjp", "jvp"), ALL, 0.7),
    "smooth": (("forward", "vjp", "jvp"), ALL, 0.7),
    "plane": (("forward", "vjp"), ALL, 0.7),
    "sweep": (("forward", "winners", "vjp"), ("opencv",), 1.0),
    "overhead": (("forward", "forward_resolved", "forward_unplanned"), ALL, 0.7),
    "networks": (("forward", "vjp"), ("torch", "onnxruntime", "onednn"), 0.1),
    "synthetic": (("forward", "vjp"), ("torch", "onnxruntime", "onednn"), 0.05),
}
SAMPLE = 2e-4  # seconds that one measurement lasts at least: shorter calls are repeated
BRIEF = 0.05  # seconds: longer calls fill the caches themselves
SLOW = 100  # times memcpy: beyond it a candidate gets three rounds
ENDLESS = 5  # times the seconds of a candidate: a first call beyond it is the only one
LIMIT = 300  # rounds
ROUNDS = 20  # of memcpy at least: it is everyone's unit


def say(text):
    print(text, file=sys.stderr, flush=True)


# ---- one number of threads: the child ---------------------------------------------------------------------------

def load(names, threads, folder):
    """The peers that are there, and why the others are not."""
    from problem import LeftOut
    peers, absent = {}, {}
    for name in names:
        module, kind = PEERS[name]
        try:
            peers[name] = getattr(importlib.import_module(module), kind)(threads, folder)
        except (ImportError, OSError, LeftOut) as error:
            absent[name] = str(error).splitlines()[0]
            say(f"without {name}: {absent[name]}")
    return peers, absent


def prepared(peer, problem, verb, arrays, wanted, reasons):
    """The peer's candidates after one checked call each, with the time of that call."""
    from problem import LeftOut, disagreement, tolerance
    out = []
    try:
        candidates = peer.candidates(problem, verb, arrays)
    except LeftOut as reason:
        reasons[peer.name] = str(reason)
        return out
    except Exception as error:  # a peer's own refusal
        reasons[peer.name] = f"{type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''}"
        return out
    for candidate in candidates:
        try:
            first = candidate.seconds(1)
            if wanted is not None and not candidate.other_layout:
                worst = max((disagreement(g, w) for g, w in zip(candidate.results(), wanted)), default=0.0)
                if not worst <= tolerance(problem):
                    reasons[peer.name] = f"{candidate.variant or 'its'} result differs from cenote's by {worst:.2g}"
                    continue
        except Exception as error:
            reasons[peer.name] = f"{type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''}"
            continue
        out.append((peer.name, candidate, first))
    if out:
        reasons.pop(peer.name, None)
    return out


def measured(entries, seconds):
    """The best time per call of every candidate. They take turns, and memcpy has one after every other candidate."""
    state = []
    for name, candidate, first in entries:
        repeat, taken = 1, first
        while taken < SAMPLE and repeat < 1 << 20:  # the first call was cold: settle on a number of calls
            repeat *= 2
            taken = candidate.seconds(repeat)
        state.append({"name": name, "candidate": candidate, "repeat": repeat, "best": min(first, taken / repeat),
                      "first": first, "spent": 0.0, "busy": 0.0, "rounds": 1, "samples": []})

    def sample(s):
        # What the others have left in the caches is no one's fault: a call that is not counted goes before, memcpy's too.
        if s["repeat"] == 1 and s["best"] < BRIEF:
            s["candidate"].seconds(1)
        busy = time.process_time()
        taken = s["candidate"].seconds(s["repeat"])
        s["busy"] += time.process_time() - busy
        s["spent"] += taken
        s["rounds"] += 1
        s["best"] = min(s["best"], taken / s["repeat"])
        s["samples"].append(taken / s["repeat"])

    def wants_more(s):
        if s["first"] > ENDLESS * seconds:
            return False
        slow = unit and s["best"] > SLOW * unit[0]["best"]
        return s["spent"] < seconds or s["rounds"] < (3 if slow else 6)

    unit = [s for s in state if s["name"] == "memcpy"]
    others = [s for s in state if s["name"] != "memcpy"]
    for _ in range(LIMIT):
        turn = [s for s in others if wants_more(s)]
        if not turn:
            break
        for s in turn:
            sample(s)
            for copy in unit:
                sample(copy)
    for _ in range(ROUNDS - min((s["rounds"] for s in unit), default=ROUNDS)):
        for copy in unit:
            sample(copy)
    return state


def run_problem(problem, verb, peers, seconds):
    from problem import Arrays
    arrays = Arrays(problem)
    row = {"problem": problem.name, "group": problem.group, "line": problem.line, "verb": verb,
           "bytes": problem.bytes_moved(verb), "outputs_bytes": problem.out_bytes, "candidates": {}, "left_out": {}}
    wanted, entries = None, []
    for name, peer in peers.items():
        if verb.startswith("forward_") and name not in ("cenote", "memcpy"):
            continue
        found = prepared(peer, problem, verb, arrays, None if name in ("cenote", "memcpy") else wanted,
                         row["left_out"])
        if name == "cenote":
            if not found:
                return row
            wanted = [result.copy() for result in found[0][1].results()]
        entries += found
    for s in measured(entries, seconds):
        name = s["name"] + ("*" if s["candidate"].other_layout else "")
        figure = {"seconds": s["best"], "rounds": s["rounds"]}
        if s["samples"]:  # how many cores it kept busy: shows who takes more threads than asked for
            figure["cores"] = round(s["busy"] / max(1e-9, s["spent"]), 2)
            figure["median"] = statistics.median(s["samples"])
        if s["candidate"].variant:
            figure["variant"] = s["candidate"].variant
        if s["candidate"].bytes_kept is not None:
            figure["bytes_kept"] = s["candidate"].bytes_kept
        if name not in row["candidates"] or figure["seconds"] < row["candidates"][name]["seconds"]:
            row["candidates"][name] = figure
    del entries, arrays
    gc.collect()
    return row


def child(arguments):
    threads = arguments.threads[0]
    cores = os.sched_getaffinity(0)
    # oneDNN and XLA count the cores they may use when they start. Afterwards every thread may go anywhere again.
    os.sched_setaffinity(0, sorted(cores)[:threads])
    names = [name for name in PEERS if name in arguments.peers]
    peers, absent = load(names, threads, arguments.build)
    warm_up(peers)
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), cores)
    rows, started = [], time.time()
    work = [(p, verb) for p in selected(arguments) for verb in verbs_of(p, arguments)]
    for number, (problem, verb) in enumerate(work, 1):
        verbs, own_peers, share = SECTIONS[problem.group]
        allowed = {"cenote", "memcpy", *(problem.peers or own_peers)}
        row = run_problem(problem, verb, {n: p for n, p in peers.items() if n in allowed}, arguments.seconds * share)
        row["threads"] = threads
        rows.append(row)
        unit = row["candidates"].get("memcpy", {}).get("seconds")
        figures = " ".join(f"{n} {f['seconds'] / unit:.3g}" for n, f in row["candidates"].items() if unit)
        say(f"{threads}T {number}/{len(work)} {time.time() - started:.0f}s {problem.name} {verb}: {figures}")
        if number % 20 == 0 or number == len(work):
            pathlib.Path(arguments.child).write_text(json.dumps(
                {"versions": {n: p.version for n, p in peers.items()}, "absent": absent, "rows": rows}))


def warm_up(peers):
    """Lets every library start its threads while the cores are limited."""
    from problem import Arrays, parse_line
    problem = parse_line("warm-up", "warm max f32 nhwc 1x16x64x64 3x3 s=1x1 p=1x1")
    for peer in peers.values():
        prepared(peer, problem, "forward", Arrays(problem), None, {})


# ---- what to run ------------------------------------------------------------------------------------------------

def selected(arguments):
    from problem import parse
    problems = parse(HERE / "problems.txt") + parse(HERE / "networks.txt")
    if arguments.quick:
        quick = ("resnet_stem", "vgg_k2s2", "avg3_incl", "gavg7", "resnet_stem_cl", "big_max31", "tiny_k2",
                 "smooth_k3s1_b1", "hard_k3s1", "sweep_max_k7", "sweep_max_k127", "overhead_max",
                 "resnet_50_max_pool1", "basic_pool_ci_1d_regular_max", "resnet_stem_u8")
        problems = [p for p in problems if p.name in quick]
    if arguments.only:
        problems = [p for p in problems if re.search(arguments.only, p.name) or re.fullmatch(arguments.only, p.group)]
    return problems


def verbs_of(problem, arguments):
    verbs = problem.verbs or SECTIONS[problem.group][0]
    if arguments.verbs:
        verbs = [v for v in verbs if v in arguments.verbs]
    return [v for v in verbs if problem.allowed(v)]


# ---- the whole run: the parent ----------------------------------------------------------------------------------

def machine():
    def output(*command):
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return ""

    lines = dict(line.split(":", 1) for line in output("lscpu").splitlines() if ":" in line)
    pick = {k: lines[k].strip() for k in ("Model name", "CPU(s)", "L1d cache", "L2 cache", "L3 cache") if k in lines}
    return {"cpu": pick.pop("Model name", platform.machine()), "cores": os.cpu_count(), **pick,
            "kernel": platform.release(), "python": platform.python_version(),
            "compiler": (output("c++", "--version").splitlines() or [""])[0],
            "commit": output("git", "-C", str(ROOT), "describe", "--always", "--dirty").strip()}


def environment(threads):
    """What makes every library use `threads` threads, and malloc keep the pages it has."""
    count = str(threads)
    prefix = pathlib.Path(sys.prefix)
    extra = {
        "OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "NPROC": count,
        # Fresh pages for every result would be measured as part of the peers' work.
        "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_TOP_PAD_": str(1 << 26),
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={'false' if threads == 1 else 'true'}"
                     f" intra_op_parallelism_threads={count}",
        "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", "ONEDNN_VERBOSE": "0",
        # oneDNN's package runs on a SYCL device for processors, which it finds through this file.
        "OCL_ICD_FILENAMES": str(prefix / "lib" / "libintelocl.so"),
        "LD_LIBRARY_PATH": str(prefix / "lib"),
        "CENOTE_BENCH_XNNPACK": next((str(p) for p in prefix.glob(
            "lib/python*/site-packages/executorch/lib/libexecutorch_backend_xnnpack.so")), ""),
    }
    return {**os.environ, **extra}


def versions_of_packages():
    from importlib import metadata
    out = {}
    for name in ("torch", "onnxruntime", "onnx", "onednn", "executorch", "opencv-python-headless", "jax", "jaxlib",
                 "numpy"):
        try:
            out[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return out


def parent(arguments):
    started = time.time()
    folder = pathlib.Path(arguments.output)
    folder.mkdir(parents=True, exist_ok=True)
    result = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
              "command": " ".join(["bench/run.py", *[a for a in sys.argv[1:]]]), "quick": arguments.quick,
              "machine": machine(), "packages": versions_of_packages(), "rows": []}
    for threads in arguments.threads:
        part = folder / f"part-{threads}.json"
        command = [sys.executable, __file__, *sys.argv[1:], "--child", str(part), "--threads", str(threads)]
        status = subprocess.run(command, env=environment(threads)).returncode
        if status != 0:
            say(f"the half with {threads} threads ended with status {status}; its rows up to then are kept")
        if part.exists():
            half = json.loads(part.read_text())
            part.unlink()
            result["rows"] += half["rows"]
            result.setdefault("versions", {}).update(half["versions"])
            result.setdefault("absent", {}).update(half["absent"])
        if status != 0 and not arguments.keep_going:
            sys.exit(1)
    result["wall_seconds"] = round(time.time() - started)
    (folder / "results.json").write_text(json.dumps(result, indent=1) + "\n")
    import report
    report.write(folder)
    say(f"{folder}/README.md written after {result['wall_seconds']} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    listed = lambda text: tuple(text.split(","))
    parser.add_argument("--only", metavar="REGEX", help="problems whose name has it, or whose section it is")
    parser.add_argument("--peers", type=listed, default=tuple(PEERS), help="comma-separated; cenote and memcpy always")
    parser.add_argument("--verbs", type=listed, help="comma-separated: forward,winners,vjp,vjp_from_input,jvp")
    parser.add_argument("--threads", type=lambda t: [int(n) for n in t.split(",")], default=[1, 2])
    parser.add_argument("--seconds", type=float, default=0.3, help="per candidate of an entry (default 0.3)")
    parser.add_argument("--quick", action="store_true", help="a few problems, to see that everything works")
    parser.add_argument("--list", action="store_true", help="print the problems and stop")
    parser.add_argument("--build", default=str(ROOT / "build/release/bench"), help="where the shared libraries are")
    parser.add_argument("--output", default=str(ROOT / "docs/benchmark"), help="where the results go")
    parser.add_argument("--keep-going", action="store_true", help="write a report even if a half ended early")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.peers = tuple(dict.fromkeys(("cenote", "memcpy", *arguments.peers)))
    for name in arguments.peers:
        if name not in PEERS:
            parser.error(f"no such peer: {name}")
    if arguments.list:
        for problem in selected(arguments):
            print(f"{problem.group:10} {problem.line}   -> {'x'.join(map(str, problem.out_space))}"
                  f"   [{','.join(verbs_of(problem, arguments))}]")
    elif arguments.child:
        child(arguments)
    else:
        parent(arguments)


if __name__ == "__main__":
    main()
