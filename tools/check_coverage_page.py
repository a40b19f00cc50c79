#!/usr/bin/env python3
"""Checks docs/from-torchlean.md: no definition of the original is missing, and what the page says is there is there.

  - every name in docs/from-torchlean-names.txt has exactly one row, and no row names anything else
  - every name in the original's documentation, where that is at hand, is in the list
  - no cell is empty; every test named exists; every file linked or named exists
  - every expression occurs, spacing aside, in the file of the test that stands beside it

    check_coverage_page.py [--original FOLDER]      default: ../shared/original beside this tree, if it is there
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "from-torchlean.md"
NAMES = ROOT / "docs" / "from-torchlean-names.txt"
TEST = re.compile(r"\b(?:TEST|TEST_F|TEST_P|TYPED_TEST|RC_GTEST_PROP)\s*\(\s*(\w+)\s*,\s*(\w+)")
FAULTS = "Faults that are not repeated"  # the one table whose first column is prose


def listed_names():
    lines = (line.strip() for line in NAMES.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def names_in_original(folder):
    """Lean's signatures: `def Spec.name`, `structure Spec.name`."""
    found = set()
    for path in sorted(folder.glob("*.txt")):
        found.update(re.findall(r"\b(?:def|structure|abbrev|inductive) Spec\.([\w.'?!]+)", path.read_text()))
    return found


def rows(page):
    """(heading, cells) of every table row, without the header and the line below it."""
    heading, header = "", True
    for line in page.splitlines():
        if line.startswith("## "):
            heading = line[3:]
        if not line.startswith("|"):
            header = True
        elif set(line) <= set("|-: "):
            header = False
        elif not header:
            yield heading, [cell.strip() for cell in line.strip().strip("|").split("|")]


def tests_in_sources():
    """Suite.Name -> text of its file without white space."""
    found = {}
    for path in sorted((ROOT / "tests").rglob("*.cpp")):
        text = path.read_text()
        squeezed = re.sub(r"\s+", "", text)
        found.update({f"{suite}.{name}": squeezed for suite, name in TEST.findall(text)})
    return found


def main():
    parser = argparse.ArgumentParser(description="Checks docs/from-torchlean.md.")
    parser.add_argument("--original", type=Path, default=ROOT.parent / "shared" / "original")
    original = parser.parse_args().original

    problems = []
    page = PAGE.read_text()
    names = listed_names()
    tests = tests_in_sources()
    problems += [f"listed twice: {name}" for name in sorted({name for name in names if names.count(name) > 1})]
    if original.is_dir():
        unlisted = names_in_original(original) - set(names)
        problems += [f"not in {NAMES.name}: {name}" for name in sorted(unlisted)]

    seen, tests_named = [], set()
    for heading, cells in rows(page):
        row = f"row {cells[0]!r} of {heading!r}"
        if len(cells) != 3 or not all(cells):
            problems.append(f"{row} needs three cells, none of them empty")
            continue
        definition, spelling, test = cells
        named = re.findall(r"`([^`]+)`", test)
        if not named:
            problems.append(f"{row} names no test")
        tests_named.update(named)
        missing = [name for name in named if name not in tests]
        problems += [f"{row}: no test {name}" for name in missing]
        if heading == FAULTS:
            continue
        match = re.fullmatch(r"`([^`]+)`", definition)
        if not match:
            problems.append(f"{row}: the first cell is one name in backticks")
            continue
        seen.append(match[1])
        expressions = re.findall(r"`([^`]+)`", spelling)
        if not expressions:
            problems.append(f"{row} has no expression")
        for expression in expressions:
            if named and not missing and not any(re.sub(r"\s+", "", expression) in tests[name] for name in named):
                problems.append(f"{row}: `{expression}` does not occur in the file of {named[0]}")

    # Tests and files that the prose names.
    prose = "\n".join(line for line in page.splitlines() if not line.startswith("|"))
    for name in re.findall(r"`([A-Z]\w*\.[A-Z]\w*)`", prose):
        tests_named.add(name)
        if name not in tests:
            problems.append(f"no test {name}")
    for target in re.findall(r"\]\(([^)#:]+)\)", re.sub(r"`[^`]*`", "", page)):
        if not (PAGE.parent / target).exists():
            problems.append(f"link to nothing: {target}")
    for path in re.findall(r"`((?:tests|tools|docs)/[\w./-]+)`", page):
        if not (ROOT / path).exists():
            problems.append(f"no file {path}")

    problems += [f"missing definition: {name}" for name in names if name not in seen]
    problems += [f"not in {NAMES.name}: {name}" for name in seen if name not in names]
    problems += [f"two rows: {name}" for name in sorted({name for name in seen if seen.count(name) > 1})]
    for problem in problems:
        print(f"{PAGE.name}: {problem}", file=sys.stderr)
    print(f"{len(names)} definitions, {len(tests_named)} tests named, {len(problems)} missing")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
