"""PyTorch's functions, case by case: values, indices, gradients and tangents of random problems.

Max is compared bit for bit. An average may differ in its last bits: PyTorch adds in the element type, cenote in a wider one.
"""

import math

import numpy as np
import pytest

import cenote

torch = pytest.importorskip("torch")
F = torch.nn.functional

CASES = 1700  # of each family; together well over 5,000 comparisons of a value, a gradient and a tangent
LAYOUTS = ["contiguous", "channels_last", "strided", "reversed in memory", "expanded"]


@pytest.fixture(autouse=True)
def few_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # the cases are small
    yield
    torch.set_num_threads(before)


def draw_input(random, rank, dtype):
    """A tensor of rank + 1 or rank + 2 axes with a layout, ties and NaN drawn at random."""
    spatial = [int(random.integers(1, 10)) for _ in range(rank)]
    shape = [int(random.integers(1, 4))] + spatial
    if random.random() < 0.8:
        shape = [int(random.choice([0, 1, 1, 2, 2, 3]))] + shape
    x = torch.from_numpy(random.standard_normal(shape)).to(dtype)
    if random.random() < 0.4:
        x = (x * 2).round()  # ties, and zeros of both signs
    if random.random() < 0.25 and x.numel():
        x[torch.from_numpy(random.random(shape) < 0.1)] = math.nan
    if random.random() < 0.1 and x.numel():
        x[torch.from_numpy(random.random(shape) < 0.1)] = -math.inf
    layout = random.choice(LAYOUTS)
    if layout == "channels_last" and x.dim() == rank + 2 and rank > 1:
        x = x.contiguous(memory_format=torch.channels_last if rank == 2 else torch.channels_last_3d)
    elif layout == "strided":
        wide = torch.zeros([2 * n + 1 for n in shape], dtype=dtype)
        wide[tuple(slice(1, None, 2) for _ in shape)] = x
        x = wide[tuple(slice(1, None, 2) for _ in shape)]
    elif layout == "reversed in memory":
        x = x.permute(*reversed(range(x.dim()))).contiguous().permute(*reversed(range(x.dim())))
    elif layout == "expanded" and x.dim() == rank + 2:
        x = x[:, :1].expand(x.shape)
    return x


def draw_windows(random, x, rank, dilated):
    """Arguments that PyTorch accepts, or None if what was drawn leaves no window."""
    kernel = [int(random.integers(1, 5)) for _ in range(rank)]
    dilation = [int(random.integers(1, 3)) if dilated and random.random() < 0.3 else 1 for _ in range(rank)]
    stride = [int(random.integers(1, 4)) for _ in range(rank)] if random.random() < 0.7 else None
    padding = [int(random.integers(0, k // 2 + 1)) for k in kernel]  # PyTorch's older bound, by the undilated kernel
    ceil_mode = bool(random.random() < 0.4)
    for n, k, d, p in zip(x.shape[-rank:], kernel, dilation, padding):
        if d * (k - 1) + 1 > n + 2 * p:
            return None
        if rank == 3 and not dilated and k > n:
            return None  # PyTorch's average refuses it in 3-D, padded or not
    sizes = cenote.output_shape(cenote.Sliding(kernel, stride, padding, dilation, ceil_mode), x.shape)[-rank:]
    for n, m, k, s, d, p in zip(x.shape[-rank:], sizes, kernel, stride or kernel, dilation, padding):
        if not all(any(0 <= o * s + w * d - p < n for w in range(k)) for o in range(m)):
            return None  # a window without a cell of the input: -inf in PyTorch, 0 here
    return kernel, stride, padding, dilation, ceil_mode


def numpy_of(tensor):
    return tensor.detach().resolve_neg().numpy()


def same(ours, theirs):
    assert ours.shape == tuple(theirs.shape)
    np.testing.assert_array_equal(ours, numpy_of(theirs))


def near(ours, theirs, x, tolerance):
    assert ours.shape == tuple(theirs.shape)
    finite = x[torch.isfinite(x)]
    scale = float(finite.abs().max()) if finite.numel() else 1.0
    np.testing.assert_allclose(ours, numpy_of(theirs), rtol=tolerance, atol=tolerance * max(scale, 1.0))


def pull_and_push(function, x, random):
    """Value, a gradient with what PyTorch makes of it, a tangent with what it makes of it."""
    leaf = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    y = function(leaf)
    gy = torch.from_numpy(random.standard_normal(y.shape)).to(x.dtype)
    (gx,) = torch.autograd.grad(y, leaf, gy)
    dx = torch.from_numpy(random.standard_normal(x.shape)).to(x.dtype)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x.detach().clone(), dx)
        dy = torch.autograd.forward_ad.unpack_dual(function(dual)).tangent
    return y, gy, gx, dx, torch.zeros_like(y) if dy is None else dy


def torch_function(name, rank):
    """PyTorch's function. In 3-D it refuses some layouts, which are made contiguous for it."""
    function = getattr(F, f"{name}{rank}d")
    if rank < 3:
        return function
    return lambda x, *arguments, **options: function(x.contiguous(), *arguments, **options)


def cases(random, dilated):
    count = 0
    while count < CASES:
        rank = int(random.integers(1, 4))
        dtype = torch.float64 if random.random() < 0.5 else torch.float32
        x = draw_input(random, rank, dtype)
        windows = draw_windows(random, x, rank, dilated)
        if windows is not None:
            count += 1
            yield rank, x, windows


def test_max_pool(random):
    for rank, x, (kernel, stride, padding, dilation, ceil_mode) in cases(random, dilated=True):
        theirs = torch_function("max_pool", rank)
        named = getattr(cenote, f"max_pool{rank}d")
        arguments = (kernel, stride, padding, dilation, ceil_mode)
        y, indices = theirs(x, *arguments, return_indices=True)
        ours, ours_at = named(x, *arguments, return_indices=True)
        same(ours, y)
        same(ours_at, indices)
        options = {"ceil_mode": ceil_mode}
        same(cenote.max_pool(x, kernel, stride, padding, dilation, **options), y)
        _, gy, gx, dx, dy = pull_and_push(lambda t: theirs(t, *arguments), x, random)
        # Several windows may add to one cell, in PyTorch in another order.
        near(cenote.max_pool_vjp(x, gy, kernel, stride, padding, dilation, **options), gx, gy, 1e-6)
        same(cenote.max_pool_jvp(x, dx, kernel, stride, padding, dilation, **options), dy)
        at = cenote.linearize(cenote.Max(), cenote.Sliding(kernel, stride, padding, dilation, ceil_mode), x)
        same(at.indices(), indices)
        same(at.push(dx), dy)


def test_avg_pool(random):
    for rank, x, (kernel, stride, padding, _, ceil_mode) in cases(random, dilated=False):
        theirs = torch_function("avg_pool", rank)
        include = bool(random.random() < 0.5)
        divisor = int(random.integers(1, 6)) if rank > 1 and random.random() < 0.3 else None
        arguments = [kernel, stride, padding, ceil_mode, include] + ([divisor] if rank > 1 else [])
        tolerance = 1e-12 if x.dtype == torch.float64 else 2e-5
        x = torch.where(torch.isinf(x), torch.zeros_like(x), x)
        y, gy, gx, dx, dy = pull_and_push(lambda t: theirs(t, *arguments), x, random)
        near(getattr(cenote, f"avg_pool{rank}d")(x, *arguments), y, x, tolerance)
        options = {"ceil_mode": ceil_mode, "count_include_pad": include, "divisor_override": divisor}
        near(cenote.avg_pool(x, kernel, stride, padding, **options), y, x, tolerance)
        near(cenote.avg_pool_vjp(x, gy, kernel, stride, padding, **options), gx, gy, tolerance)
        near(cenote.avg_pool_vjp(x.shape, gy, kernel, stride, padding, **options), gx, gy, tolerance)
        near(cenote.avg_pool_jvp(x.shape, dx, kernel, stride, padding, **options), dy, dx, tolerance)


def test_adaptive_pools(random):
    for case, (rank, x, _) in enumerate(cases(random, dilated=False)):
        keep = 0.2 if rank > 1 else 0.0  # in 1-D PyTorch takes no None
        size = [None if random.random() < keep else int(random.integers(1, 7)) for _ in range(rank)]
        full = [n if m is None else m for m, n in zip(size, x.shape[-rank:])]
        if case % 2:
            theirs = torch_function("adaptive_max_pool", rank)
            y, indices = theirs(x, size, return_indices=True)
            ours, ours_at = getattr(cenote, f"adaptive_max_pool{rank}d")(x, size, return_indices=True)
            same(ours, y)
            same(ours_at, indices)
            _, gy, gx, dx, dy = pull_and_push(lambda t: theirs(t, size), x, random)
            near(cenote.adaptive_max_pool_vjp(x, gy, full), gx, gy, 1e-6)
            same(cenote.adaptive_max_pool_jvp(x, dx, full), dy)
        else:
            theirs = torch_function("adaptive_avg_pool", rank)
            tolerance = 1e-12 if x.dtype == torch.float64 else 2e-5
            x = torch.where(torch.isinf(x), torch.zeros_like(x), x)
            y, gy, gx, dx, dy = pull_and_push(lambda t: theirs(t, size), x, random)
            near(getattr(cenote, f"adaptive_avg_pool{rank}d")(x, size), y, x, tolerance)
            near(cenote.adaptive_avg_pool_vjp(x.shape, gy, full), gx, gy, tolerance)
            near(cenote.adaptive_avg_pool_jvp(x, dx, full), dy, dx, tolerance)


def test_lp_pool(random):
    # Even powers and whole windows: for odd ones PyTorch keeps the sign, and it scales what ceil rounding cuts off.
    for rank, x, (kernel, stride, _, _, _) in cases(random, dilated=False):
        if any(k > n for k, n in zip(kernel, x.shape[-rank:])):
            continue
        x = torch.nan_to_num(x, 0.0, 0.0, 0.0).double()
        power = float(random.choice([2, 4]))
        if rank == 1:
            kernel, stride = kernel[0], stride[0] if stride else None  # PyTorch takes no list here
        y = torch_function("lp_pool", rank)(x, power, kernel, stride)
        near(getattr(cenote, f"lp_pool{rank}d")(x, power, kernel, stride), y, x, 1e-9)
        near(cenote.lp_pool(x, kernel, stride, axes=tuple(range(-rank, 0)), p=power), y, x, 1e-9)


def test_half_precision_is_that_of_exact_sums(random):
    # PyTorch's float32 result, rounded once.
    for dtype in (torch.float16, torch.bfloat16):
        for _ in range(50):
            x = torch.from_numpy(random.standard_normal((2, 3, 9, 9))).to(dtype)
            y = F.avg_pool2d(x.double(), 3, 2, 1).to(dtype)
            assert (torch.from_numpy(cenote.avg_pool2d(x, 3, 2, 1).view(np.uint16)).view(dtype) == y).all()
            y, indices = F.max_pool2d(x, 3, 2, 1, return_indices=True)
            ours, at = cenote.max_pool2d(x, 3, 2, 1, return_indices=True)
            same(at, indices)
            assert (torch.from_numpy(ours.view(np.uint16)).view(dtype) == y).all()


def test_what_torch_refuses_is_refused(random):
    x = torch.zeros(1, 1, 6, 6)
    for arguments in (
        {"kernel_size": 3, "padding": 2},
        {"kernel_size": 0},
        {"kernel_size": 7},
        {"kernel_size": 2, "stride": 0},
        {"kernel_size": 2, "dilation": 0},
        {"kernel_size": (2, 2, 2)},
        {"kernel_size": 2, "padding": -1},
    ):
        with pytest.raises(RuntimeError):
            F.max_pool2d(x, **arguments)
        with pytest.raises(ValueError, match="^max_pool2d: "):
            cenote.max_pool2d(x, **arguments)
