"""On whose threads and in what memory cenote.torch computes."""

import os
import pathlib
import re
import subprocess
import sys
from functools import partial

import pytest

torch = pytest.importorskip("torch")
import cenote.torch  # noqa: E402

OPENMP = "ATen parallel backend: OpenMP" in torch.__config__.parallel_info()
BEGIN = """
import os, threading, torch, cenote.torch
torch.set_num_threads(2)
x = torch.randn(4, 32, 128, 128)
expected = torch.nn.functional.max_pool2d(x, 3, 2, 1)  # torch's threads are running now
"""
TOGETHER = BEGIN + """
before = len(os.listdir("/proc/self/task"))
assert torch.equal(cenote.torch.max_pool2d(x, 3, 2, 1), expected)
leaf = x.clone().requires_grad_()
cenote.torch.max_pool2d(leaf, 3, 2, 1).sum().backward()
cenote.torch.smooth_max_pool2d(leaf, 3, 2, 1, beta=1.0).sum().backward()
print(len(os.listdir("/proc/self/task")) - before)
"""
LARGE_WINDOWS = """
import os, torch, cenote.torch
torch.set_num_threads(1)
leaf = torch.randn(1, 512, 32, 32, requires_grad=True)
pooled = [cenote.torch.max_pool2d(leaf, 32), cenote.torch.avg_pool2d(leaf, 32)]
for y in pooled:
    torch.autograd.grad(y, leaf, torch.ones_like(y), retain_graph=True)
before = len(os.listdir("/proc/self/task"))
torch.set_num_threads(2)
torch.autograd.grad(pooled[which], leaf, torch.ones_like(pooled[which]))
print(len(os.listdir("/proc/self/task")) - before)
"""
FORKED = BEGIN + """
child = os.fork()
if child == 0:
    same = cenote.torch.max_pool2d(x, 3, 2, 1).numpy().tobytes() == expected.numpy().tobytes()  # torch itself would hang
    os._exit(0 if same else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
AT_ONCE = BEGIN + """
wrong = []
def work():
    for _ in range(30):
        if not torch.equal(cenote.torch.max_pool2d(x, 3, 2, 1), expected):
            wrong.append(1)
workers = [threading.Thread(target=work) for _ in range(4)]
for each in workers: each.start()
for each in workers: each.join()
print(len(wrong))
"""


def run_python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(not (OPENMP and sys.platform == "linux"), reason="torch's threads are not OpenMP's here")
def test_calls_compute_on_the_threads_that_torch_has():
    # A second pool would have the first one's threads, which still wait busily for more work, in its way.
    assert run_python(TOGETHER) == "0"


@pytest.mark.skipif(not (OPENMP and sys.platform == "linux"), reason="torch's threads are not OpenMP's here")
@pytest.mark.parametrize("which", [0, 1], ids=["max", "average"])
def test_gradients_of_few_outputs_take_the_threads_that_many_cells_deserve(which):
    assert run_python(f"which = {which}\n" + LARGE_WINDOWS) == "1"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_computes_without_the_threads_it_does_not_have():
    assert run_python(FORKED) == "0"


def test_calls_on_many_python_threads_are_independent():
    assert run_python(AT_ONCE) == "0"


def flags_of_memory(address):
    """The kernel's flags of the mapping that holds the address."""
    inside = False
    for line in pathlib.Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            inside = int(found[1], 16) <= address < int(found[2], 16)
        elif inside and line.startswith("VmFlags:"):
            return line.split()[1:]
    return []


@pytest.mark.skipif(
    not pathlib.Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="no large pages on this system"
)
def test_large_results_lie_on_large_pages():
    x = torch.zeros(1, 1, 1500, 1500, requires_grad=True)
    for pool in (cenote.torch.max_pool2d, cenote.torch.avg_pool2d, partial(cenote.torch.smooth_max_pool2d, beta=1.0)):
        y = pool(x, 2, 1)
        (gx,) = torch.autograd.grad(y, x, torch.ones_like(y))
        for made in (y.detach(), gx):
            assert "hg" in flags_of_memory(made.data_ptr() + made.nbytes // 2)
