"""Documentation for Python runs: every session of the pages prints what the page shows."""

import doctest
import pathlib
import re
import subprocess
import sys
import zlib

import numpy as np
import pytest

import cenote

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("page", "least"), [("docs/python.md", 30), ("README.md", 4), ("docs/torch.md", 20)])
def test_sessions_of_a_page_run(page, least):
    results = doctest.testfile(str(ROOT / page), module_relative=False, globs={"np": np, "cenote": cenote})
    assert results.failed == 0
    assert results.attempted >= least, "the page has changed its form"


def test_the_tour_runs_and_its_pictures_are_pictures(tmp_path):
    done = subprocess.run([sys.executable, ROOT / "examples/tour.py", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    left, right = re.search(r"^(\S+) = (\S+), from 216 bytes kept$", done.stdout, re.MULTILINE).groups()
    assert left == right
    losses = [float(loss) for loss in re.findall(r"^step +\d+: loss (\S+)$", done.stdout, re.MULTILINE)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.05
    shown = re.findall(r"<img src='([^']+)'", (tmp_path / "index.html").read_text())
    assert sorted(shown) == sorted(file.name for file in tmp_path.iterdir() if file.name != "index.html")
    for name in shown:
        data = (tmp_path / name).read_bytes()
        if name.endswith(".png"):
            width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
            length = int.from_bytes(data[33:37], "big")
            assert len(zlib.decompress(data[41 : 41 + length])) == height * (width + 1)
