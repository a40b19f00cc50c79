"""Documentation for Python runs: every session of the pages prints what the page shows."""

import doctest
import pathlib

import numpy as np
import pytest

import cenote

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("page", "least"), [("docs/python.md", 30), ("docs/jax.md", 20), ("README.md", 4)])
def test_sessions_of_a_page_run(page, least):
    results = doctest.testfile(str(ROOT / page), module_relative=False, globs={"np": np, "cenote": cenote})
    assert results.failed == 0
    assert results.attempted >= least, "the page has changed its form"
