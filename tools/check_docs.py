#!/usr/bin/env python3
"""Documentation that cannot drift: the README's program and output are the example's, what docs/graph.md shows occurs in
examples/graph.cpp and in what it prints, every rule of docs/semantics.md and every trap of docs/peers.md has a test named
after it, and every link to a file leads somewhere."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def main():
    problems = []
    readme = (ROOT / "README.md").read_text()
    for name in ("quickstart.cpp", "quickstart.out"):
        if (ROOT / "examples" / name).read_text().strip() not in readme:
            problems.append(f"README.md does not contain examples/{name} as it is")

    # Pieces of the example, spacing aside; what it prints stands in blocks without a language.
    squeezed = {name: "".join((ROOT / "examples" / f"graph.{name}").read_text().split()) for name in ("cpp", "out")}
    graph_blocks = re.findall(r"^```(\w*)\n(.*?)^```", (ROOT / "docs" / "graph.md").read_text(), re.MULTILINE | re.DOTALL)
    graph_blocks += [("cpp", block) for block in re.findall(r"^```cpp\n(  Graph.*?)^```", readme, re.MULTILINE | re.DOTALL)]
    for language, block in graph_blocks:
        if "".join(block.split()) not in squeezed["cpp"] + squeezed["out"]:
            problems.append(f"examples/graph.cpp neither has nor prints what a page shows: {block.strip().splitlines()[0]}")
    if len(graph_blocks) < 12:
        problems.append(f"only {len(graph_blocks)} pieces of docs/graph.md found: the page has changed its form")

    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*_test.cpp"))
    named = set(re.findall(r"(?:TEST|RC_GTEST_PROP)\(\w+, ([A-Z]\d+)_\w+", tests))
    rules = set(re.findall(r"^\| ([A-Z]\d+) \|", (ROOT / "docs" / "semantics.md").read_text(), re.MULTILINE))
    traps = set(re.findall(r"^\| (T\d+) ", (ROOT / "docs" / "peers.md").read_text(), re.MULTILINE))
    if len(rules) < 28 or len(traps) < 20:
        problems.append(f"only {len(rules)} rules and {len(traps)} traps found: the tables have changed their form")
    problems += [f"no test is named after {rule}" for rule in sorted((rules | traps) - named)]
    ids = re.findall(r'X\(\w+,\s+"([A-Z]\d+)"', (ROOT / "include/cenote/error.hpp").read_text())
    problems += [f"error.hpp names rule {rule}, which docs/semantics.md does not have" for rule in sorted(set(ids) - rules)]

    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("tests/*/*.md")]:
        for link in re.findall(r"\]\(([^)#]+)", re.sub(r"`[^`]*`", "", page.read_text())):  # not in code
            if "://" not in link and not (page.parent / link).exists():
                problems.append(f"{page.relative_to(ROOT)} links to {link}, which is not there")

    print("\n".join(problems))
    print(f"docs: {len(rules)} rules and {len(traps)} traps have tests, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
