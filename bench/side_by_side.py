"""Two libraries on the pooling layers of known networks: they take turns on each layer, and the best time of each counts."""

import argparse
import math
import pathlib
import time

from problem import LeftOut, parse


def best_times(candidates, seconds):
    """The best time of each candidate; they take turns for about `seconds` each."""
    best, spent = [math.inf] * len(candidates), 0.0
    for candidate in candidates:
        candidate()
    rounds = 0
    while rounds < 3 or spent < seconds * len(candidates):
        for i, candidate in enumerate(candidates):
            start = time.perf_counter()
            candidate()
            took = time.perf_counter() - start
            best[i], spent = min(best[i], took), spent + took
        rounds += 1
    return best


def arguments(title):
    parser = argparse.ArgumentParser(description=title.splitlines()[0])
    parser.add_argument("--only", default="", help="layers whose names have this in them")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.02, help="for each verb of each candidate")
    parser.add_argument("--worst", type=int, default=5, help="how many of the worst ratios to print")
    parser.add_argument("--every", type=int, default=1, help="take every so many layers")
    return parser.parse_args()


def side_by_side(options, verbs, measure, peer, why_left_out):
    """measure(problem, seconds) gives (verb, (our time, their time)); prints the ratios, and what is behind."""
    ratios, left_out = {verb: [] for verb in verbs}, 0
    layers = [p for p in parse(pathlib.Path(__file__).with_name("networks.txt")) if p.group == "networks"]
    for problem in [p for p in layers if options.only in p.name][:: options.every]:
        try:
            for verb, (ours, theirs) in measure(problem, options.seconds):
                ratios[verb].append((theirs / ours, ours, theirs, problem.name))
        except LeftOut:
            left_out += 1
    print(f"{'':14}{'layers':>8}{'faster':>8}{'geometric mean':>16}{'worst':>8}{'best':>8}   {peer}'s time over cenote's")
    for verb, found in ratios.items():
        mean = math.exp(sum(math.log(ratio) for ratio, *_ in found) / len(found))
        faster = sum(ratio > 1 for ratio, *_ in found)
        print(f"{verb:14}{len(found):>8}{faster:>8}{mean:>16.2f}{min(found)[0]:>8.2f}{max(found)[0]:>8.2f}")
    for verb, found in ratios.items():
        for ratio, ours, theirs, name in sorted(found)[: options.worst]:
            behind = "  behind" if ratio <= 1 else ""
            print(f"{verb:14}{ratio:>6.2f}  {ours * 1e6:>10.1f} us, {peer} {theirs * 1e6:>10.1f} us  {name}{behind}")
    print(f"{left_out} layers left out: {peer} cannot say them, {why_left_out}")
