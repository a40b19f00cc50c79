"""Threads: of the library, of Python, and signals."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import cenote

SLIDING = cenote.Sliding((3, 3), stride=2, padding=1)


@pytest.fixture
def threads():
    yield
    cenote.set_num_threads(0)


def test_the_number_of_threads_is_what_was_set(threads):
    initial = cenote.get_num_threads()
    cenote.set_num_threads(3)
    assert cenote.get_num_threads() == 3
    cenote.set_num_threads(0)
    assert cenote.get_num_threads() == initial >= 1


def test_no_result_depends_on_the_number_of_threads(threads, random):
    x = random.standard_normal((4, 16, 65, 67)).astype(np.float32)
    gy = random.standard_normal(cenote.output_shape(SLIDING, x.shape)).astype(np.float32)
    results = []
    for count in (1, 2, 3, 7):
        cenote.set_num_threads(count)
        results.append([
            [cenote.forward(op, SLIDING, x).tobytes(), cenote.jvp(op, SLIDING, x, x).tobytes(), cenote.vjp(op, SLIDING, x, gy).tobytes()]
            for op in (cenote.Max(), cenote.Average(), cenote.SmoothMax(1.0), cenote.Lp(2))
        ])
    assert all(each == results[0] for each in results)


def test_max_and_average_do_not_depend_on_the_instruction_set(random):
    x = random.standard_normal((4, 30, 31)).astype(np.float32)
    assert cenote.target() == cenote.targets()[0] or "CENOTE_TARGET" in os.environ
    results = []
    try:
        for target in cenote.targets():
            cenote.limit_target(target)
            assert cenote.target() == target
            results.append([cenote.forward(op, SLIDING, x).tobytes() for op in (cenote.Max(), cenote.Average())])
    finally:
        cenote.limit_target("")
    assert all(each == results[0] for each in results)


def test_python_runs_while_a_call_computes():
    # The call is made on another thread, and ends only after this one has seen it begin: impossible under the lock.
    x = np.zeros((1 << 23,), np.float32)
    out = np.full((x.size - 63,), np.nan, np.float32)
    done = threading.Event()

    def compute():
        cenote.smooth_max_pool(x, (64,), 1, beta=1.0, out=out)
        done.set()

    def begun():
        return not np.isnan(out[:: out.size // 256]).all()

    worker = threading.Thread(target=compute)
    worker.start()
    seen = False
    while not done.is_set():
        seen = seen or (begun() and not done.is_set())
    worker.join()
    assert seen


def test_calls_on_many_python_threads_are_independent(random):
    inputs = [random.standard_normal((2, 40, 41)).astype(np.float32) for _ in range(8)]
    expected = [cenote.max_pool(x, (3, 3), 2, 1).tobytes() for x in inputs]
    failures = []

    def work(i):
        for _ in range(200):
            if cenote.max_pool(inputs[i], (3, 3), 2, 1).tobytes() != expected[i]:
                failures.append(i)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


INTERRUPTED = """
import os, signal, threading, numpy as np, cenote
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may have been told to ignore it
x = np.random.default_rng(0).standard_normal((64, 256, 256)).astype(np.float32)
expected = cenote.max_pool(x, (3, 3), 2, 1).tobytes()
caught = 0
for _ in range(5):
    timer = threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        while True:
            cenote.max_pool(x, (3, 3), 2, 1)
    except KeyboardInterrupt:
        caught += 1
    timer.join()
    assert cenote.max_pool(x, (3, 3), 2, 1).tobytes() == expected
print(caught)
"""


def test_an_interrupt_leaves_everything_working():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "5", done.stderr


FORKED = """
import os, numpy as np, cenote
x = np.arange(1 << 20, dtype=np.float32)
expected = cenote.max_pool(x, (2,)).tobytes()  # the library's threads are running now
child = os.fork()
if child == 0:
    os._exit(0 if cenote.max_pool(x, (2,)).tobytes() == expected else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_computes():
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "0", done.stderr


SOAK = """
import resource, numpy as np, cenote
x, gy = np.zeros((1, 8, 8), np.float32), np.zeros((1, 4, 4), np.float32)
geometry, op = cenote.Sliding((2, 2)), cenote.Max()
def rounds(count):
    for _ in range(count):
        cenote.max_pool(x, (2, 2))
        cenote.max_pool(x, [2, 2], return_indices=True)
        cenote.avg_pool_vjp((1, 8, 8), gy, (2, 2))
        cenote.smooth_max_pool_jvp(x, x, (2, 2), beta=1.0)
        cenote.forward(op, geometry, x)
        try:
            cenote.max_pool(x, 2)
        except ValueError:
            pass
        cenote.adaptive_max_pool(memoryview(x), (1, 1))
        cenote.linearize(op, geometry, x).pull(gy)
        cenote.resolve(geometry, x.shape)
        cenote.global_max_pool(x, spatial_dims=2)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rounds(10_000)
before = peak()
rounds(90_000)
print(peak() - before)
"""


def test_a_million_small_calls_leak_nothing():
    # Ten calls a round: a leak of one object of 16 bytes in any of them would show as 1.4 MB.
    grown = subprocess.run([sys.executable, "-c", SOAK], check=True, capture_output=True, text=True).stdout
    assert int(grown) < 1024, f"{grown} KiB"
