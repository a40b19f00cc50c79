"""The package as it is installed: what importing it costs, its types, its documentation, what its sdist holds."""

import ast
import doctest
import importlib
import inspect
import json
import pathlib
import pickle
import re
import subprocess
import sys
import tarfile

import pytest

import cenote

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = ["cenote", "cenote._sliding", "cenote._adaptive", "cenote._global", "cenote._verbs", "cenote._torch_names", "cenote._graph"]


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_importing_it_imports_numpy_only():
    code = "import sys, numpy; before = set(sys.modules); import cenote; print(*(set(sys.modules) - before))"
    others = {name.split(".")[0] for name in run_python(code).split()} - {"cenote", "numpy"}
    assert all(name in sys.stdlib_module_names for name in others), others


def test_importing_it_reads_few_files():
    # A count instead of a time: what importing costs beyond numpy is these modules and one shared object.
    code = "import sys, numpy; before = set(sys.modules); import cenote; print(len(set(sys.modules) - before))"
    assert int(run_python(code)) < 25


def test_the_sources_need_no_newer_python_than_the_metadata_says():
    oldest = re.search(r'requires-python = ">=(\d+)\.(\d+)"', (ROOT / "pyproject.toml").read_text())
    for file in (ROOT / "python" / "cenote").rglob("*.py"):
        text = file.read_text()
        tree = ast.parse(text, str(file), feature_version=tuple(map(int, oldest.groups())))
        uses_bars = any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) for node in ast.walk(tree))
        assert not uses_bars or "from __future__ import annotations\n" in text, file


def test_it_brings_the_libraries_it_needs():
    module = pathlib.Path(cenote._core.__file__)
    needed = subprocess.run(["ldd", module], check=True, capture_output=True, text=True).stdout
    for name, path in re.findall(r"^\s*(\S+) => (\S+)", needed, re.MULTILINE):
        ours = pathlib.Path(path).parent == module.parent
        assert ours or re.match(r"(libc|libm|libstdc\+\+|libgcc_s|libpthread|librt|libdl)\.so", name), needed


def test_the_version_is_that_of_the_library():
    assert cenote.__version__ == re.search(r"project\(cenote VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def test_it_is_tested_where_pip_has_put_it():
    assert ROOT / "python" not in pathlib.Path(cenote.__file__).parents


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_docstrings_run(module):
    results = doctest.testmod(importlib.import_module(module))
    assert results.failed == 0 and results.attempted > 0


def test_everything_public_has_a_docstring_with_an_example():
    for name in cenote.__all__:
        thing = getattr(cenote, name)
        if inspect.isfunction(thing):
            assert ">>>" in thing.__doc__, name
        elif not name.startswith("__"):
            assert thing.__doc__, name


def test_every_function_has_its_derivatives_with_the_same_arguments():
    kinds = ["", "adaptive_", "global_"]
    operators = ["max", "min", "avg", "sum", "smooth_max", "lp"]
    for name in [f"{kind}{operator}_pool" for kind in kinds for operator in operators]:
        arguments = list(inspect.signature(getattr(cenote, name)).parameters.values())
        shared = [a for a in arguments[1:] if a.name != "return_indices"]
        for verb, second in (("jvp", "dx"), ("vjp", "gy")):
            derivative = list(inspect.signature(getattr(cenote, f"{name}_{verb}")).parameters.values())
            assert [a.name for a in derivative[:2]] == ["x", second]
            assert derivative[2:] == shared, name


def test_the_stub_of_the_compiled_part_is_what_stubgen_writes(tmp_path):
    stub = tmp_path / "_core.pyi"
    subprocess.run([sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "cenote._core", "-o", stub], check=True)
    committed = ROOT / "python" / "cenote" / "_core.pyi"
    assert stub.read_text() == committed.read_text(), f"make python-stub writes {committed.name} again"


def test_types_are_strict(tmp_path):
    user = tmp_path / "user.py"
    user.write_text(
        "import numpy as np\nimport numpy.typing as npt\nimport cenote\n"
        "x = np.zeros((4, 4))\n"
        "y: npt.NDArray[np.float64] = cenote.max_pool(x, (2, 2))\n"
        "z, i = cenote.max_pool(x, (2, 2), return_indices=True)\n"
        "j: npt.NDArray[np.int64] = i\n"
        "cenote.avg_pool_vjp((4, 4), y, (2, 2), padding=[(0, 1), (1, 0)])\n"
        "print(cenote.resolve(cenote.Sliding((2, 2)), x.shape).output_shape)\n"
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "-p", "cenote"],
        capture_output=True, text=True, cwd=tmp_path,
    )
    assert checked.returncode == 0, checked.stdout
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", user], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout
    user.write_text("import cenote\ncenote.max_pool('picture', (2, 2))\n")
    wrong = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", tmp_path / "cache", user], capture_output=True, text=True
    )
    assert wrong.returncode == 1 and "No overload variant" in wrong.stdout


def test_the_sdist_holds_what_building_needs_and_nothing_else(tmp_path):
    code = f"import scikit_build_core.build as b; print(b.build_sdist({str(tmp_path)!r}))"
    name = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout.split()[-1]
    with tarfile.open(tmp_path / name) as archive:
        inside = {member.name.split("/", 1)[1] for member in archive.getmembers() if member.isfile()}
    needed = {
        str(path.relative_to(ROOT))
        for folder in ("include", "src", "cmake", "python")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix not in {".pyc", ".so"}
    } | {"CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml"}
    assert needed <= inside, needed - inside
    assert inside - needed == {"PKG-INFO"}


def test_operators_and_windows_are_values():
    values = [
        cenote.Max(), cenote.Max("all"), cenote.Min("split"), cenote.Average(), cenote.Average(False),
        cenote.Average(divisor_override=3), cenote.Sum(), cenote.SmoothMax(2.0), cenote.SmoothMax(2.0, "ignore"),
        cenote.Lp(3), cenote.Sliding((2, 2)), cenote.Sliding([2, 2], padding=[(0, 1), (1, 2)], axes=[0, 1]),
        cenote.Adaptive((3, 3)), cenote.Global(2), cenote.Global(axes=(0,), keepdims=False),
    ]
    assert len(set(values)) == len(values)
    for value in values:
        assert pickle.loads(pickle.dumps(value)) == value
        assert eval(repr(value), vars(cenote)) == value


def test_a_notebook_shows_signatures():
    assert str(inspect.signature(cenote.max_pool)).startswith("(x: 'Array', kernel: 'Ints', stride: 'Ints | None' = None")


def test_signatures_are_those_of_torch():
    torch = pytest.importorskip("torch")
    ours = {name: getattr(cenote, name) for name in cenote.__all__ if re.fullmatch(r"\w+_pool[123]d", name)}
    assert len(ours) == 15
    for name, function in ours.items():
        theirs = getattr(torch.nn.functional, name)
        documented = re.match(rf"\s*{name}\((.*?)\)\s*->", theirs.__doc__ or "")
        if inspect.isfunction(theirs) and name.startswith("lp"):
            expected = list(inspect.signature(theirs).parameters)
        elif documented:
            expected = [part.split("=")[0].strip() for part in documented[1].split(",") if part.strip() != "*"]
        else:
            expected = None
        if expected is not None:
            assert list(inspect.signature(function).parameters) == expected, json.dumps(expected)
