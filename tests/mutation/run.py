#!/usr/bin/env python3
"""Mutation check: each small mistake listed in mutants.py is made in a copy of the headers, and a suite must notice.

    tests/mutation/run.py            all mutants
    tests/mutation/run.py ceil tie   those whose name contains one of the words
    tests/mutation/run.py --sound    after other checks have shown that the suites pass on the headers as they are

A mutant is killed when a suite fails, or when one of its static_asserts does. One that survives every suite, that does not compile, or whose text is no
longer found in the headers makes the check fail.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from mutants import MUTANTS

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "mutation"
# In the order in which they are tried after the one that a mutant names as its likely killer.
SUITES = ["rules/rules", "geometry/window", "golden/golden", "laws/adjoint", "laws/operator", "laws/linearize",
          "scalars/sum", "laws/dual", "laws/interval", "errors/errors", "graph/golden", "graph/run", "graph/laws"]
COMPILER = os.environ.get("CXX", "clang++-14")  # faster than g++ without optimisation
FLAGS = ["-std=c++20", "-O0", "-ffp-contract=off"]
LIBRARIES = ["-lrapidcheck", "-lgtest", "-lgtest_main", "-lmpfr", "-lgmp"]
SECONDS = 120


def compile_suite(suite, include, program):
    source = ROOT / "tests" / f"{suite}_test.cpp"
    command = [COMPILER, *FLAGS, f"-I{include}", f"-I{ROOT}/tests", "-include", f"{WORK}/pch/pch.hpp",
               str(source), "-o", str(program), *LIBRARIES]
    return subprocess.run(command, capture_output=True, text=True)


def passes(program):
    environment = dict(os.environ, RC_PARAMS="seed=1 max_success=150 max_size=40")
    try:
        run = subprocess.run([str(program)], cwd=ROOT, env=environment, capture_output=True, timeout=SECONDS)
        return run.returncode == 0
    except subprocess.TimeoutExpired:
        return False


def prepare():
    """A precompiled header."""
    shutil.rmtree(WORK, ignore_errors=True)
    (WORK / "pch").mkdir(parents=True)
    header = WORK / "pch" / "pch.hpp"
    header.write_text("#include <gtest/gtest.h>\n#include <rapidcheck.h>\n#include <rapidcheck/gtest.h>\n")
    subprocess.run([COMPILER, *FLAGS, "-x", "c++-header", str(header), "-o", f"{header}.gch"], check=True)


def baseline(suite):
    """What is wrong with a suite on the headers as they are, if anything: then it could not tell a mutant from them."""
    program = WORK / f"baseline_{suite.replace('/', '_')}"
    build = compile_suite(suite, ROOT / "include", program)
    if build.returncode != 0:
        return f"{suite} does not compile:\n{build.stderr[-2000:]}"
    return None if passes(program) else f"{suite} fails on the headers as they are"


def judge(number, mutant):
    """None if the mutant was killed, with the killer's name; otherwise what is wrong."""
    include = WORK / f"mutant_{number}"
    shutil.copytree(ROOT / "include", include)
    path = include / "cenote" / mutant.file
    text = path.read_text()
    if text.count(mutant.find) != 1:
        return None, f"'{mutant.find}' occurs {text.count(mutant.find)} times in {mutant.file}, expected once"
    path.write_text(text.replace(mutant.find, mutant.replace))
    first = [mutant.killer] if mutant.killer else []
    program = include / "suite"
    for suite in first + [s for s in SUITES if s not in first]:
        build = compile_suite(suite, include, program)
        if build.returncode != 0 and not re.search("static assertion failed|static_assert failed", build.stderr):
            return None, f"does not compile in {suite}:\n{build.stderr[-1500:]}"
        if build.returncode != 0 or not passes(program):  # a law that is a static_assert, or one that runs
            shutil.rmtree(include)
            return suite, None
    return None, "survived every suite"


def main():
    sound = "--sound" in sys.argv
    words = [word for word in sys.argv[1:] if word != "--sound"]
    chosen = [m for m in MUTANTS if not words or any(w in m.name for w in words)]
    start = time.time()
    prepare()
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        broken = [b for b in pool.map(baseline, () if sound else SUITES) if b]
        if broken:
            sys.exit("\n".join(broken))
        if not sound:
            print(f"{len(SUITES)} suites pass unmutated", flush=True)
        failures = 0
        for mutant, (killer, problem) in zip(chosen, pool.map(judge, range(len(chosen)), chosen)):
            print(f"  {'killed by ' + killer if killer else 'NOT KILLED':34} {mutant.name}", flush=True)
            if problem:
                failures += 1
                print(f"    {problem}")
    print(f"{len(chosen) - failures} of {len(chosen)} mutants killed in {time.time() - start:.0f} s")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
