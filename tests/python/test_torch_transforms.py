"""cenote.torch inside torch's own machinery: opcheck, vmap, compile, export, profiler, DataLoader workers."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import cenote.torch as ct  # noqa: E402
from cenote._tags import (  # noqa: E402
    ADAPTIVE,
    AVERAGE,
    GLOBAL,
    LP,
    MAX,
    MIN,
    SLIDING,
    SMOOTH_MAX,
    SUM,
    TORCH_ADAPTIVE,
    TORCH_SLIDING,
)
from cenote.torch._encoding import Job, decode, encode, is_linear, keeps_winners, output_shape  # noqa: E402
from torch_functions import EXAMPLES  # noqa: E402

named = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
FEW = [e for e in EXAMPLES if e.name in ("avg_pool2d", "max_pool2d", "smooth_max_pool2d", "lp_pool2d", "global_max_pool")]
few = pytest.mark.parametrize("example", FEW, ids=lambda example: example.name)

JOBS = [
    Job((MAX, "first"), (TORCH_SLIDING, 2, 3, 2, 1, 1, True), "max_pool2d"),
    Job((AVERAGE, False, None), (TORCH_SLIDING, 2, (3, 2), None, 1, 1, False), "avg_pool2d"),
    Job((AVERAGE, True, 3), (TORCH_ADAPTIVE, 2, (2, None)), "adaptive_avg_pool2d"),
    Job((SUM,), (ADAPTIVE, 2, (0, -1)), "adaptive_sum_pool"),
    Job((SMOOTH_MAX, 1.5, "zeros"), (SLIDING, (3, 3), 2, [(0, 1), (1, 1)], 1, False, None), "smooth_max_pool"),
    Job((LP, 3.0), (ADAPTIVE, (2, 3), None), "adaptive_lp_pool"),
    Job((MAX, "all"), (GLOBAL, 2, None, False), "global_max_pool"),
    Job((MIN, "first"), (SLIDING, (5, 5), 1, "same", 1, False, (1, 2)), "min_pool"),
    Job((MAX, "first"), (SLIDING, (17, 17), 1, "same_lower", 1, False, None), "max_pool"),  # winners of two bytes
]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.caller)
def test_operators_are_registered_as_torch_wants_them(job):
    ops = torch.ops.cenote
    for format in (torch.contiguous_format, torch.channels_last):
        x = torch.randn(2, 3, 6, 7, dtype=torch.float64).contiguous(memory_format=format).requires_grad_()
        arguments = encode(job, x.shape)
        y = ops.pool(x.detach(), *arguments)
        gy, dx = torch.randn_like(y).requires_grad_(), torch.randn_like(x).requires_grad_()
        last = format is torch.channels_last
        calls = [(ops.pool, (x,))]
        if is_linear(job):
            calls.append((ops.transpose, (gy, x.shape, last)))
        elif keeps_winners(job):
            winners = ops.pool_with_winners(x.detach(), *arguments)[1]
            calls += [(ops.pool_with_winners, (x,)), (ops.pull, (gy, winners, x.shape, last)), (ops.push, (dx, winners))]
            calls.append((ops.indices, (winners, x.shape)))
        else:
            calls += [(ops.vjp, (x, gy)), (ops.jvp, (x, dx))]
        for op, own in calls:
            results = torch.library.opcheck(op.default, (*own, *arguments))
            assert set(results.values()) == {"SUCCESS"}, (op, results)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.caller)
def test_arguments_of_operators_mean_what_was_said(job):
    shape = (2, 3, 6, 7)
    arguments = encode(job, shape)
    again = decode(arguments)
    assert again.op == job.op and again.caller == job.caller
    assert output_shape(again, shape) == output_shape(job, shape)
    assert encode(again, shape) == arguments


@named
def test_vmap_is_a_loop(example):
    x = torch.stack([example.input(seed=seed) for seed in range(3)])
    expected = torch.stack([example.call(t) for t in x])
    assert torch.equal(torch.vmap(example.call)(x), expected)
    inside = torch.vmap(example.call, in_dims=2, out_dims=1)(x.movedim(0, 2))
    assert torch.equal(inside.movedim(1, 0), expected)
    assert torch.equal(torch.vmap(torch.vmap(example.call))(x.unsqueeze(1)).squeeze(1), expected)


@few
def test_gradients_of_vmap_and_vmap_of_gradients(example):
    x = torch.stack([example.input(seed=seed) for seed in range(3)])
    loss = lambda t: example.call(t).sin().sum()
    each = torch.vmap(torch.func.grad(loss))(x)
    torch.testing.assert_close(each, torch.func.grad(lambda t: torch.vmap(example.call)(t).sin().sum())(x))
    torch.testing.assert_close(each, torch.stack([torch.func.grad(loss)(t) for t in x]))


def test_vmap_checks_the_rank_that_its_function_sees():
    with pytest.raises(ValueError, match="max_pool2d: input has 2 axes"):
        torch.vmap(lambda t: ct.max_pool2d(t, 2))(torch.ones(3, 8, 8))


def test_indices_under_vmap():
    x = torch.stack([EXAMPLES[0].input(seed=seed) for seed in range(3)])
    y, indices = torch.vmap(lambda t: ct.max_pool1d(t, 2, return_indices=True))(x)
    for i, t in enumerate(x):
        assert torch.equal(indices[i], ct.max_pool1d(t, 2, return_indices=True)[1])


@few
def test_compiled_functions_without_a_break(example):
    torch._dynamo.reset()
    compiled = torch.compile(example.call, fullgraph=True, backend="aot_eager", dynamic=True)
    for shape in (example.shape, tuple(n + 2 for n in example.shape)):
        x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
        y = compiled(x)
        assert torch.equal(y, example.call(x))
        (gx,) = torch.autograd.grad(y.sin().sum(), x)
        torch.testing.assert_close(gx, torch.autograd.grad(example.call(x).sin().sum(), x)[0])
        with torch.no_grad():
            assert torch.equal(compiled(x), y)


def test_windows_as_large_as_an_unknown_input():
    torch._dynamo.reset()
    whole = torch.compile(lambda t: ct.avg_pool2d(t, t.shape[2:]), fullgraph=True, backend="eager", dynamic=True)
    for shape in ((1, 2, 5, 6), (2, 2, 7, 3)):
        x = torch.randn(shape)
        torch.testing.assert_close(whole(x), x.mean((2, 3), keepdim=True))


def test_every_function_is_compiled_in_one_graph():
    torch._dynamo.reset()
    inputs = [example.input() for example in EXAMPLES]
    together = lambda *xs: [example.call(x) for example, x in zip(EXAMPLES, xs)]
    results = torch.compile(together, fullgraph=True, backend="aot_eager")(*inputs)
    for example, x, y in zip(EXAMPLES, inputs, results):
        assert torch.equal(y, example.call(x)), example.name


def test_a_compiled_backward_pass():
    from torch._dynamo import compiled_autograd

    x = torch.randn(2, 3, 9, 9, requires_grad=True)
    for pool in (lambda x: ct.max_pool2d(x, 2), lambda x: ct.avg_pool2d(x, 2), lambda x: ct.lp_pool2d(x, 3.0, 2)):
        (expected,) = torch.autograd.grad(pool(x).sum(), x)
        loss = pool(x).sum()
        with compiled_autograd._enable(torch.compile(backend="eager")):
            loss.backward()
        assert torch.equal(x.grad, expected)
        x.grad = None


def test_a_compiled_step_with_indices():
    torch._dynamo.reset()
    step = torch.compile(lambda t: ct.max_pool2d(t, 2, return_indices=True), fullgraph=True, backend="aot_eager")
    x = torch.randn(1, 2, 6, 6).contiguous(memory_format=torch.channels_last)
    for ours, theirs in zip(step(x), torch.nn.functional.max_pool2d(x, 2, return_indices=True)):
        assert torch.equal(ours, theirs) and ours.stride() == theirs.stride()


@pytest.mark.parametrize("strict", [False, True])
def test_exported_programs_with_sizes_left_open(strict, tmp_path):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.pools = torch.nn.Sequential(
                ct.MaxPool2d(3, 2, 1), ct.AvgPool2d(2, ceil_mode=True), ct.SmoothMaxPool2d(2, 1, beta=2.0)
            )
            self.last = ct.AdaptiveAvgPool2d((2, 3))

        def forward(self, x):
            return self.last(self.pools(x))

    model, open_size = Model(), torch.export.Dim.DYNAMIC
    program = torch.export.export(
        model, (torch.randn(2, 3, 17, 19),), dynamic_shapes=({0: open_size, 2: open_size, 3: open_size},), strict=strict
    )
    torch.export.save(program, tmp_path / "model.pt2")
    program = torch.export.load(tmp_path / "model.pt2")
    for shape in ((2, 3, 17, 19), (5, 3, 40, 33)):
        x = torch.randn(shape)
        assert torch.equal(program.module()(x), model(x))
    targets = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert targets and all(target.startswith("cenote.pool") or "getitem" in target for target in targets)


def test_profilers_see_the_operators():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        ct.max_pool2d(torch.ones(1, 1, 4, 4), 2)
    assert any(event.key.startswith("cenote::") for event in profile.key_averages())


def test_subclasses_and_modes_see_the_operators():
    seen = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Mode():
        ct.avg_pool2d(torch.ones(1, 1, 4, 4), 2)
    assert any(name.startswith("cenote.pool") for name in seen)
    x = torch.nn.Parameter(torch.ones(1, 1, 4, 4))
    assert ct.max_pool2d(x, 2).requires_grad


def test_inference_mode():
    with torch.inference_mode():
        y = ct.max_pool2d(torch.ones(1, 1, 4, 4), 2)
        assert y.is_inference() and y.sum() == 4


WORKERS = """
import sys, torch, cenote.torch as ct

class Pooled(torch.utils.data.Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, i):
        x = torch.arange(3 * 96.0 * 96).reshape(3, 96, 96) * (-1) ** i
        return ct.max_pool2d(x, 3, 2, 1), ct.avg_pool2d(x, 2).sum(), torch.get_num_threads()

if __name__ == "__main__":
    data = Pooled()
    expected = [data[i] for i in range(6)]  # the threads of this process have run before workers are made
    for method in sys.argv[1:]:
        loader = torch.utils.data.DataLoader(data, num_workers=2, multiprocessing_context=method, batch_size=None)
        for (y, s, threads), (y0, s0, _) in zip(loader, expected):
            assert torch.equal(y, y0) and s == s0 and threads == 1
    print("done")
"""


def test_workers_of_a_data_loader_forked_and_spawned(tmp_path):
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    run = subprocess.run([sys.executable, script, "fork", "spawn"], capture_output=True, text=True, timeout=300)
    assert run.stdout == "done\n", run.stderr


def test_tensors_of_a_torch_without_an_exchange_table():
    from cenote import _core

    class Old:  # what versions of torch before the table offer
        def __init__(self, tensor):
            self.tensor = tensor

        def detach(self):
            return self.tensor.detach()

    x = torch.randn(1, 1, 4, 4, requires_grad=True)
    y = torch.empty(1, 1, 2, 2)
    mark = min(_core.type_numbers().values())
    windows = (TORCH_SLIDING, 2, 2, None, 0, 1, False)
    result = _core.forward((MAX, "first"), windows, (Old(x), mark), (lambda *shape: Old(y), mark))
    assert isinstance(result, Old) and torch.equal(y, ct.max_pool2d(x, 2))


def test_tuples_and_functions_of_a_caller_are_not_taken_for_tensors():
    import cenote

    x = torch.ones(4, 4).numpy()
    with pytest.raises(TypeError, match="max_pool: x is of type tuple"):
        cenote.max_pool((torch.ones(4, 4),), (2, 2))
    with pytest.raises(TypeError, match="max_pool: out is of type builtin_function_or_method"):
        cenote.max_pool(x, (2, 2), out=torch.empty)
