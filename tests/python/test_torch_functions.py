"""cenote.torch's functions against PyTorch's: values, indices, gradients, tangents, memory formats; types and errors."""

import re

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

import cenote  # noqa: E402
import cenote.torch as ct  # noqa: E402
import test_torch_parity as parity  # noqa: E402
from torch_functions import EXAMPLES  # noqa: E402

CASES = 500  # of each family


@pytest.fixture(autouse=True)
def few_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # the cases are small
    yield
    torch.set_num_threads(before)


def close(ours, theirs, exact):
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    if exact:
        assert torch.equal(ours.nan_to_num(nan=7.5), theirs.nan_to_num(nan=7.5))
    else:
        tolerance = 1e-12 if ours.dtype == torch.float64 else 3e-5
        scale = max(1.0, float(theirs.nan_to_num().abs().max())) if theirs.numel() else 1.0
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def compare(ours, theirs, x, random, exact):
    """Value, gradient and tangent of two functions, with the gradient's and the tangent's seeds the same."""
    results = []
    for function in (ours, theirs):
        leaf = x.detach().requires_grad_()
        y = function(leaf)
        if not results:
            gy = torch.from_numpy(random.standard_normal(y.shape)).to(x.dtype)
            dx = torch.from_numpy(random.standard_normal(x.shape)).to(x.dtype)
        (gx,) = torch.autograd.grad(y, leaf, gy)
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x.detach().clone(), dx)
            dy = torch.autograd.forward_ad.unpack_dual(function(dual)).tangent
        results.append((y.detach(), gx, torch.zeros_like(y) if dy is None else dy))
    (y, gx, dy), (their_y, their_gx, their_dy) = results
    close(y, their_y, exact)
    close(gx, their_gx, False)  # several windows may add to one cell, in PyTorch in another order
    close(dy, their_dy, exact)


@pytest.fixture
def fewer_cases(monkeypatch):
    monkeypatch.setattr(parity, "CASES", CASES)


def test_max_pool_is_that_of_torch(random, fewer_cases):
    for rank, x, arguments in parity.cases(random, dilated=True):
        theirs, ours = parity.torch_function("max_pool", rank), getattr(ct, f"max_pool{rank}d")
        y, indices = ours(x, *arguments, return_indices=True)
        their_y, their_indices = theirs(x, *arguments, return_indices=True)
        close(y, their_y, True)
        close(indices, their_indices, True)
        compare(lambda t: ours(t, *arguments), lambda t: theirs(t, *arguments), x, random, True)


def test_avg_pool_is_that_of_torch(random, fewer_cases):
    for rank, x, (kernel, stride, padding, _, ceil_mode) in parity.cases(random, dilated=False):
        theirs, ours = parity.torch_function("avg_pool", rank), getattr(ct, f"avg_pool{rank}d")
        divisor = [int(random.integers(1, 6)) if random.random() < 0.3 else None] if rank > 1 else []
        arguments = [kernel, stride, padding, ceil_mode, bool(random.random() < 0.5), *divisor]
        x = torch.where(torch.isinf(x), torch.zeros_like(x), x)
        compare(lambda t: ours(t, *arguments), lambda t: theirs(t, *arguments), x, random, False)


def test_adaptive_pools_are_those_of_torch(random, fewer_cases):
    for case, (rank, x, _) in enumerate(parity.cases(random, dilated=False)):
        name = "adaptive_max_pool" if case % 2 else "adaptive_avg_pool"
        theirs, ours = parity.torch_function(name, rank), getattr(ct, f"{name}{rank}d")
        keep = 0.2 if rank > 1 else 0.0  # in 1-D PyTorch takes no None
        size = [None if random.random() < keep else int(random.integers(1, 7)) for _ in range(rank)]
        x = torch.where(torch.isinf(x), torch.zeros_like(x), x)
        compare(lambda t: ours(t, size), lambda t: theirs(t, size), x, random, bool(case % 2))


def test_lp_pool_is_that_of_torch(random, fewer_cases):
    for rank, x, (kernel, _, _, _, _) in parity.cases(random, dilated=False):
        if any(k > n for k, n in zip(kernel, x.shape[-rank:])):
            continue
        kernel = kernel[0] if rank == 1 else kernel
        x = x.nan_to_num(0.0, 0.0, 0.0).double().abs() + 0.1  # away from 0, where a norm has no derivative
        theirs, ours = parity.torch_function("lp_pool", rank), getattr(ct, f"lp_pool{rank}d")
        compare(lambda t: ours(t, 2.0, kernel), lambda t: theirs(t, 2.0, kernel), x, random, False)


@pytest.mark.parametrize("name", ["max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool"])
def test_results_and_gradients_have_the_memory_format_of_torch(name):
    formats = {2: torch.channels_last, 3: torch.channels_last_3d}
    for rank, shape in ((2, (2, 3, 6, 5)), (2, (2, 1, 6, 5)), (2, (1, 3, 1, 1)), (3, (2, 3, 4, 5, 6))):
        size = 1 if shape[-1] == 1 else 2
        for format in (torch.contiguous_format, formats[rank]):
            outputs = []
            for functions in (ct, F):
                x = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
                x = x.contiguous(memory_format=format).requires_grad_()
                y = getattr(functions, f"{name}{rank}d")(x, size)
                (gx,) = torch.autograd.grad(y.sum(), x)
                outputs.append((y, gx))
            for ours, theirs in zip(*outputs):
                # PyTorch's 3-D functions are not all consistent; ours keep the format of their input.
                if rank == 2:
                    assert ours.stride() == theirs.stride(), (shape, format)
                assert ours.is_contiguous(memory_format=format)


def test_indices_serve_max_unpool():
    x = torch.arange(16.0).reshape(1, 1, 4, 4).flip(-1).contiguous(memory_format=torch.channels_last)
    y, indices = ct.max_pool2d(x, 2, return_indices=True)
    assert torch.equal(F.max_unpool2d(y, indices, 2), F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2))


def test_a_tensor_is_read_where_it_lies():
    # With the last cells of every row unreadable as part of x, a copy that forgets strides would differ.
    wide = torch.full((2, 3, 9, 12), 1e9)
    x = wide[:, ::2, 1:8, 2:9]
    x.copy_(torch.arange(float(x.numel())).reshape(x.shape))
    for view in (x, x.transpose(2, 3), x.permute(1, 0, 3, 2)):
        assert torch.equal(ct.max_pool2d(view, 3, 2, 1), F.max_pool2d(view, 3, 2, 1))
    assert torch.equal(ct.max_pool2d(torch._neg_view(x), 2), F.max_pool2d(-x, 2))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_integers_are_pooled(dtype):
    x = torch.arange(32).reshape(2, 4, 4).flip(1).to(dtype)
    assert torch.equal(ct.max_pool2d(x, 2), F.max_pool2d(x, 2))
    assert ct.avg_pool2d(x, 2).dtype == dtype
    assert ct.max_pool2d(x, 2, return_indices=True)[1].dtype == torch.int64


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_keeps_its_type_and_its_gradient(dtype):
    x = torch.linspace(-4, 4, 64).reshape(1, 1, 8, 8).to(dtype).requires_grad_()
    for name in ("max_pool2d", "avg_pool2d"):
        y = getattr(ct, name)(x, 3, 2, 1)
        (gx,) = torch.autograd.grad(y.sum(), x)
        assert y.dtype == gx.dtype == dtype
        assert torch.equal(y, getattr(F, name)(x.double(), 3, 2, 1).to(dtype))


def test_autocast_gives_the_types_of_torch():
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        for rank in (1, 2, 3):
            x = torch.rand([1, 2] + [4] * rank, dtype=dtype)
            for name in ("max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool"):
                with torch.autocast("cpu", torch.bfloat16):
                    ours, theirs = (getattr(module, f"{name}{rank}d")(x, 2) for module in (ct, F))
                assert ours.dtype == theirs.dtype, (name, rank, dtype)
    weight = torch.ones(2, 1, 3, 3, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        ct.max_pool2d(F.conv2d(torch.rand(1, 1, 8, 8), weight), 2).sum().backward()
    assert weight.grad.dtype == torch.float32


def test_results_do_not_depend_on_threads():
    x = torch.randn(4, 8, 64, 64)
    for example in ("max_pool2d", "avg_pool2d"):
        results = []
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            results.append(getattr(ct, example)(x, 3, 2, 1))
        assert all(torch.equal(results[0], other) for other in results[1:])


@pytest.mark.parametrize("format", [torch.contiguous_format, torch.channels_last])
def test_a_result_without_axes_is_a_number(format):
    x = torch.arange(24.0).reshape(1, 2, 3, 4).to(memory_format=format)
    assert ct.global_max_pool(x, axes=(0, 1, 2, 3), keepdims=False).equal(torch.tensor(23.0))
    leaf = x.clone().requires_grad_()
    ct.global_max_pool(leaf, axes=(0, 1, 2, 3), keepdims=False, ties="first").backward()
    assert leaf.grad.sum() == leaf.grad.max() == 1


def test_results_do_not_alias_the_input():
    x = torch.ones(1, 1, 2, 2)
    y = ct.max_pool2d(x, 1)
    y += 1
    assert x.sum() == 4


def test_an_empty_batch_is_legal_with_its_gradient():
    x = torch.empty(0, 3, 8, 8, requires_grad=True)
    for name in ("max_pool2d", "avg_pool2d"):
        y = getattr(ct, name)(x, 2)
        assert y.shape == (0, 3, 4, 4)
        assert torch.autograd.grad(y.sum(), x)[0].shape == x.shape


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_every_function_is_that_of_numpy_arrays(example, monkeypatch):
    x = example.input()
    y = example.call(x)
    calls = []

    def through_numpy(input, call):
        op, windows, caller = call
        calls.append(caller)
        return torch.from_numpy(cenote._core.forward(op, windows, input.numpy(), None, caller))

    for module in (ct._torch_names, ct._any_rank):
        monkeypatch.setattr(module, "pool", through_numpy)
    assert torch.equal(example.call(x), y) and calls[0] == example.name


WRONG = [
    (lambda x: ct.max_pool2d(x, 0), ValueError, "max_pool2d: kernel_size is 0"),
    (lambda x: ct.max_pool2d(x, 2, 0), ValueError, "max_pool2d: stride is 0"),
    (lambda x: ct.max_pool2d(x, 3, padding=2), ValueError, "max_pool2d: padding"),
    (lambda x: ct.max_pool2d(x, 7), ValueError, "max_pool2d: kernel_size spans 7 cells on axis 2"),
    (lambda x: ct.max_pool2d(x, "2"), TypeError, "max_pool2d: kernel_size is '2'"),
    (lambda x: ct.max_pool2d(x, 2.0), TypeError, "max_pool2d: kernel_size is 2.0"),
    (lambda x: ct.max_pool3d(x[0], 2), ValueError, "max_pool3d: input has 3 axes"),
    (lambda x: ct.avg_pool2d(x, 2, divisor_override=0), ValueError, "avg_pool2d: divisor_override"),
    (lambda x: ct.lp_pool2d(x, 0.5, 2), ValueError, "lp_pool2d: norm_type"),
    (lambda x: ct.smooth_max_pool2d(x, 2, beta=0.0), ValueError, "smooth_max_pool2d: beta"),
    (lambda x: ct.smooth_max_pool2d(x, 2, beta=1.0, padding_mode="edge"), ValueError, "smooth_max_pool2d: padding_mode"),
    (lambda x: ct.max_pool(x, 2), ValueError, "max_pool: kernel"),
    (lambda x: ct.max_pool(x, (2, 2), ties="last"), ValueError, "max_pool: ties is 'last'"),
    (lambda x: ct.max_pool(x, (2, 2), axes=(0, 0)), ValueError, "max_pool: axes"),
    (lambda x: ct.global_avg_pool(x), ValueError, "global_avg_pool: axes"),
    (lambda x: ct.adaptive_max_pool2d(x, (2, 2, 2)), ValueError, "adaptive_max_pool2d: output_size"),
    (lambda x: ct.max_pool2d(x.numpy(), 2), TypeError, "max_pool2d: input is of type ndarray; give a torch.Tensor"),
    (lambda x: ct.max_pool2d(x > 0, 2), TypeError, "max_pool2d: input has dtype torch.bool; legal are torch.float64"),
    (lambda x: ct.max_pool2d(x + 1j, 2), TypeError, "max_pool2d: input has dtype torch.complex64"),
    (lambda x: ct.max_pool2d(x.to_sparse(), 2), TypeError, "max_pool2d: input has the layout torch.sparse_coo"),
    (lambda x: ct.smooth_max_pool2d(x.int(), 2, beta=1.0), TypeError, "smooth_max_pool2d: "),
]


@pytest.mark.parametrize("call, kind, message", WRONG, ids=[message[:48] for _, _, message in WRONG])
def test_wrong_arguments_are_named(call, kind, message):
    x = torch.ones(1, 1, 6, 6)
    with pytest.raises(kind, match="^" + re.escape(message)):
        call(x)
    if "ndarray" in message or "sparse" in message:
        return
    with pytest.raises((ValueError, TypeError), match="^" + re.escape(message)):  # the way through torch's dispatcher
        torch.func.grad(lambda t: call(x + 0 * t.sum().to(x.dtype)).sum())(torch.ones(3))


def test_tensors_of_other_devices_are_refused():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        x = torch.empty(1, 1, 4, 4, device="cuda")
        with pytest.raises(ValueError, match=r"^max_pool2d: input is on cuda:0; cenote computes on the CPU, move it .* \.cpu"):
            ct.max_pool2d(x, 2)
    y = ct.max_pool2d(torch.empty(1, 1, 4, 4, device="meta"), 2)  # shapes alone
    assert y.is_meta and y.shape == (1, 1, 2, 2)


def test_what_is_not_the_tensor_in_memory_is_not_read_from_memory():
    from torch.utils._python_dispatch import TorchDispatchMode

    x = torch.randn(1, 1, 6, 6)
    negated = torch._neg_view(x)  # minus x, in x's memory
    assert torch.equal(ct.max_pool2d(negated, 2), F.max_pool2d(-x, 2))
    assert torch.equal(ct.max_pool2d(negated, 2, return_indices=True)[1], F.max_pool2d(-x, 2, return_indices=True)[1])
    zeros = torch._efficientzerotensor((1, 1, 6, 6))  # in no memory
    assert torch.equal(ct.avg_pool2d(zeros, 2), torch.zeros(1, 1, 3, 3))

    class Subclass(torch.Tensor):
        pass

    assert type(ct.max_pool2d(x.as_subclass(Subclass), 2)) is Subclass
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Mode():
        ct.avg_pool2d(x, 2)
    assert torch.ops.cenote.pool.default in seen
    traced = torch.jit.trace(lambda t: ct.avg_pool2d(t, 2), x, check_trace=False)
    assert torch.equal(traced(x + 1), ct.avg_pool2d(x + 1, 2))


@pytest.mark.parametrize("format", [torch.contiguous_format, torch.channels_last])
def test_eager_gradients_have_the_inputs_memory_format_and_gradients_of_their_own(format):
    x = torch.randn(2, 3, 6, 6, dtype=torch.float64).contiguous(memory_format=format).requires_grad_()
    for call in (
        lambda t: ct.max_pool2d(t, 2),
        lambda t: ct.max_pool2d(t, 2, return_indices=True)[0],
        lambda t: ct.avg_pool2d(t, 3, 2),
    ):
        y = call(x)
        assert y.is_contiguous(memory_format=format)
        gy = torch.randn_like(y).requires_grad_()
        (gx,) = torch.autograd.grad(y, x, gy, create_graph=True)
        assert gx.is_contiguous(memory_format=format)
        (back,) = torch.autograd.grad(gx, gy, torch.ones_like(gx))
        assert torch.equal(back, call(torch.ones_like(x)))  # all three keep a constant, and are linear in the gradient
        rows = torch.autograd.grad(y, x, torch.stack([gy, 2 * gy]).detach(), is_grads_batched=True, retain_graph=True)[0]
        assert torch.equal(rows[1], 2 * rows[0])
