#!/usr/bin/env python3
"""Must-not-compile tests, on every compiler that is installed.

Each .cpp file here must fail to compile, with messages that contain every text given in a line `// expect: TEXT`. With
-DCENOTE_CONTROL it must compile, so that a failure is not a mere typo: one compiler says so for all of them.

    run.py [file.cpp ...]      all files of this folder unless some are named
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = HERE.parents[1] / "include"
# Without the echoed source lines: the text must be in a message, not merely in the line it points at.
FLAGS = {
    "g++": ["-fno-diagnostics-show-caret"],
    "clang++": ["-fno-caret-diagnostics"],
    "clang++-14": ["-fno-caret-diagnostics"],
}


HEADERS = ("pool", "graph")  # what files begin with; graph.hpp contains pool.hpp
PRECOMPILED = {}  # (compiler, header): options


def compilers():
    found = {}
    for name in FLAGS:
        path = shutil.which(name)
        if path:
            found.setdefault(os.path.realpath(path), name)  # clang++ is often a link to clang++-14
    return list(found.values())


def precompile(compiler, name, folder):
    """A header that many files begin with, read once: options that make the compiler use it."""
    header = INCLUDE / "cenote" / f"{name}.hpp"
    out = Path(folder) / compiler / name / "cenote" / f"{name}.hpp.gch"
    out.parent.mkdir(parents=True)
    subprocess.run([compiler, "-w", "-std=c++20", f"-I{INCLUDE}", "-x", "c++-header", str(header), "-o", str(out)], check=True)
    return [f"-I{out.parents[1]}"] if compiler == "g++" else ["-include-pch", str(out)]


def compile_file(compiler, path, *defines):
    name = "graph" if "cenote/graph.hpp" in path.read_text() else "pool"
    command = [compiler, "-fsyntax-only", "-std=c++20", *PRECOMPILED[compiler, name], f"-I{INCLUDE}", *FLAGS[compiler],
               *defines, str(path)]
    environment = {**os.environ, "LC_ALL": "C"}  # plain quotes in g++'s messages
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    return done.returncode == 0, done.stderr


def check(job):
    """What is wrong with this file on this compiler, as a list of sentences."""
    path, compiler, control = job
    expected = re.findall(r"^\s*// expect: (.*\S)", path.read_text(), re.MULTILINE)
    if not expected:
        return ["has no line `// expect: TEXT`"]
    if control:
        compiles, messages = compile_file(compiler, path, "-DCENOTE_CONTROL")
        if not compiles:
            return ["does not compile with -DCENOTE_CONTROL:\n" + messages]
    compiles, messages = compile_file(compiler, path)
    if compiles:
        return ["compiles, but must not"]
    missing = [text for text in expected if text not in messages]
    return [f"the messages do not contain {text!r}" for text in missing] + ([messages] if missing else [])


def main():
    files = [Path(name).resolve() for name in sys.argv[1:]] or sorted(HERE.glob("*.cpp"))
    names = compilers()
    if not files or not names:
        sys.exit("compile_fail: no files" if not files else "compile_fail: no compiler")
    jobs = [(path, name, name == names[-1]) for path in files for name in names]  # clang++ is the faster one
    missed = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(max_workers=2) as pool:
        pairs = [(compiler, name) for compiler in names for name in HEADERS]
        PRECOMPILED.update(zip(pairs, pool.map(lambda pair: precompile(*pair, folder), pairs)))
        for (path, name, _), problems in zip(jobs, pool.map(check, jobs)):
            print(f"{'MISS' if problems else 'ok  '} {path.name} ({name})", flush=True)
            for problem in problems:
                print("     " + problem.rstrip().replace("\n", "\n     "))
            missed += bool(problems)
    print(f"compile_fail: {len(files)} files on {', '.join(names)}: {len(jobs) - missed} of {len(jobs)} as expected")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
