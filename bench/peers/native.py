"""Candidates that are called from C++ and timed there: cenote, memcpy, oneDNN, XNNPACK (see bench/job.hpp)."""

import ctypes
import os
import pathlib

from peers import Candidate
from problem import LeftOut, aligned

LIMIT = 8
List = ctypes.c_int64 * LIMIT
OPERATORS = {"max": 0, "avg": 1, "avgx": 2, "smax": 3}
TYPES = {"f32": 0, "f64": 1, "f16": 2, "bf16": 3, "u8": 4, "i8": 5, "i16": 6}
WINDOWS = {"sliding": 0, "adaptive": 1, "global": 2}
VERBS = {"forward": 0, "forward_resolved": 1, "forward_unplanned": 2, "winners": 3, "vjp": 4, "vjp_from_input": 5,
         "jvp": 6, "copy": 7}
READS = {"forward": "x", "forward_resolved": "x", "forward_unplanned": "x", "winners": "x", "vjp": "x gy",
         "vjp_from_input": "x gy", "jvp": "x dx"}
WRITES = {"forward": "y", "forward_resolved": "y", "forward_unplanned": "y", "winners": "y", "vjp": "y gx",
          "vjp_from_input": "gx", "jvp": "y dy"}
RESULTS = {"vjp": ["gx"], "vjp_from_input": ["gx"], "jvp": ["y", "dy"]}


class NativeProblem(ctypes.Structure):
    _fields_ = [("op", ctypes.c_int32), ("type", ctypes.c_int32), ("windows", ctypes.c_int32),
                ("verb", ctypes.c_int32), ("rank", ctypes.c_int32), ("pooled", ctypes.c_int32),
                ("channels_last", ctypes.c_int32), ("threads", ctypes.c_int32), ("beta", ctypes.c_double),
                ("in_", List), ("out", List), ("kernel", List), ("stride", List), ("dilation", List),
                ("pad_low", List), ("pad_high", List), ("copy_bytes", ctypes.c_size_t),
                ("x", ctypes.c_void_p), ("y", ctypes.c_void_p), ("dx", ctypes.c_void_p), ("dy", ctypes.c_void_p),
                ("gy", ctypes.c_void_p), ("gx", ctypes.c_void_p)]


class Job:
    def __init__(self, library, problem):
        self.library, self.problem = library, problem
        self.handle = library.bench_make(ctypes.byref(problem))
        if not self.handle:
            raise LeftOut(library.bench_text(0).decode())

    def seconds(self, n):
        taken = self.library.bench_seconds(self.handle, n)
        if taken < 0:
            raise LeftOut(self.library.bench_text(0).decode())
        return taken

    def bytes_kept(self):
        return self.library.bench_bytes_kept(self.handle)

    def __del__(self):
        if self.handle:
            self.library.bench_free(self.handle)


class Native:
    library_name = ""

    def __init__(self, threads, folder):
        self.threads = threads
        path = pathlib.Path(folder) / f"{self.library_name}.so"
        if not path.exists():
            raise LeftOut(f"{path.name} was not built")
        self.library = ctypes.CDLL(str(path))
        self.library.bench_make.restype = ctypes.c_void_p
        self.library.bench_make.argtypes = [ctypes.POINTER(NativeProblem)]
        self.library.bench_seconds.restype = ctypes.c_double
        self.library.bench_seconds.argtypes = [ctypes.c_void_p, ctypes.c_long]
        self.library.bench_bytes_kept.restype = ctypes.c_int64
        self.library.bench_bytes_kept.argtypes = [ctypes.c_void_p]
        self.library.bench_free.argtypes = [ctypes.c_void_p]
        self.library.bench_text.restype = ctypes.c_char_p
        self.library.bench_text.argtypes = [ctypes.c_int]
        self.version = self.library.bench_text(1).decode()

    def prepare(self, problem, verb, arrays, threads=None):
        native = NativeProblem(
            op=OPERATORS[problem.op], type=TYPES[problem.dtype], windows=WINDOWS[problem.windows], verb=VERBS[verb],
            rank=problem.rank + 2, pooled=problem.rank, channels_last=problem.channels_last,
            threads=threads or self.threads, beta=problem.beta, in_=List(*problem.in_shape),
            out=List(*problem.out_shape), kernel=List(*problem.kernel), stride=List(*problem.stride),
            dilation=List(*problem.dilation), pad_low=List(*problem.low), pad_high=List(*problem.high))
        used = {}
        for name in READS[verb].split():
            used[name] = arrays.get(name)
        for name in WRITES[verb].split():
            used[name] = aligned(problem.in_shape if name == "gx" else problem.out_shape, problem.type)
        for name, array in used.items():
            setattr(native, name, array.ctypes.data)
        return native, used

    def candidate(self, problem, verb, arrays, variant):
        native, used = self.prepare(problem, verb, arrays)
        job = Job(self.library, native)
        kept = job.bytes_kept()
        return Candidate(variant, job.seconds, lambda: [used[name] for name in RESULTS.get(verb, ["y"])],
                         keep=(job, used), bytes_kept=kept if kept >= 0 else None)

    def candidates(self, problem, verb, arrays):
        return [self.candidate(problem, verb, arrays, "")]


class Cenote(Native):
    name = "cenote"
    library_name = "shim"


class Memcpy(Native):
    name = "memcpy"
    library_name = "shim"

    def candidates(self, problem, verb, arrays):
        size = max(1, problem.bytes_moved(verb) // 2)
        source, target = aligned((size,), "u1"), aligned((size,), "u1")
        native = NativeProblem(verb=VERBS["copy"], threads=self.threads, copy_bytes=size, x=source.ctypes.data,
                               y=target.ctypes.data)
        job = Job(self.library, native)
        return [Candidate("", job.seconds, lambda: [], keep=(job, source, target))]


class OneDnn(Native):
    name = "onednn"
    library_name = "onednn"

    def candidates(self, problem, verb, arrays):
        out = [self.candidate(problem, verb, arrays, problem.layout)]
        if problem.dtype == "f32" and problem.shape[1] % 16 == 0 and problem.group == "entries":
            os.environ["CENOTE_BENCH_BLOCKED"] = "1"
            try:
                out.append(self.candidate(problem, verb, arrays, "blocked"))
                out[-1].other_layout = True
            except LeftOut:
                pass
            finally:
                del os.environ["CENOTE_BENCH_BLOCKED"]
        return out


class Xnnpack(Native):
    name = "xnnpack"
    library_name = "xnnpack"
