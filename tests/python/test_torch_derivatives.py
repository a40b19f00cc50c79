"""Derivatives of cenote.torch: every function, first and second order, backward and forward, and how they compose."""

import pytest

torch = pytest.importorskip("torch")

from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

import cenote.torch as ct  # noqa: E402
from torch_functions import EXAMPLES  # noqa: E402

named = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
# One of each kind: linear, by winners, with a second derivative twice, of all tied cells.
FEW = [e for e in EXAMPLES if e.name in ("avg_pool2d", "max_pool2d", "smooth_max_pool2d", "lp_pool2d", "global_max_pool")]
few = pytest.mark.parametrize("example", FEW, ids=lambda example: example.name)


@named
def test_gradients_and_tangents(example):
    x = example.input().requires_grad_()
    assert gradcheck(example.call, x, fast_mode=True, check_forward_ad=True, check_batched_grad=True)


@named
def test_second_derivatives(example):
    x = example.input().requires_grad_()
    assert gradgradcheck(example.call, x, fast_mode=True, check_fwd_over_rev=True)


@few
def test_whole_jacobians_also_of_batches_of_tangents(example):
    x = example.input().requires_grad_()
    assert gradcheck(
        example.call, x, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True
    )
    assert gradgradcheck(example.call, x, check_fwd_over_rev=True)


@few
def test_hessians_are_the_same_in_every_order_of_modes(example):
    x = example.input()

    def loss(t):
        return example.call(t).pow(2).sum()

    expected = torch.autograd.functional.hessian(loss, x)
    for outer in (torch.func.jacfwd, torch.func.jacrev):
        for inner in (torch.func.jacfwd, torch.func.jacrev):
            torch.testing.assert_close(outer(inner(loss))(x), expected)


@few
def test_jacobians_of_torch_func_are_those_of_autograd(example):
    x = example.input()
    expected = torch.autograd.functional.jacobian(example.call, x)
    torch.testing.assert_close(torch.func.jacrev(example.call)(x), expected)
    torch.testing.assert_close(torch.func.jacfwd(example.call)(x), expected)
    dx = x.cos()
    y, dy = torch.func.jvp(example.call, (x,), (dx,))
    torch.testing.assert_close(y, example.call(x))
    torch.testing.assert_close(dy.flatten(), expected.reshape(dy.numel(), -1) @ dx.flatten())
    (gx,) = torch.func.vjp(example.call, x)[1](y.sin())
    torch.testing.assert_close(gx.flatten(), y.sin().flatten() @ expected.reshape(y.numel(), -1))


def test_third_derivatives_of_a_smooth_maximum():
    x = torch.tensor([0.3, -0.4, 0.9], dtype=torch.float64)

    def third(function):
        return torch.func.jacfwd(torch.func.jacrev(torch.func.jacrev(function)))(x)

    ours = third(lambda t: ct.global_smooth_max_pool(t, spatial_dims=1, beta=2.0)[0])
    torch.testing.assert_close(ours, third(lambda t: torch.logsumexp(2.0 * t, 0) / 2.0))


def test_a_norm_of_zeros_has_no_slope_and_no_curvature():
    x = torch.zeros(1, 1, 4, 4, dtype=torch.float64, requires_grad=True)
    (gx,) = torch.autograd.grad(ct.lp_pool2d(x, 2.0, 2).sum(), x, create_graph=True)
    assert torch.equal(gx, torch.zeros_like(gx))
    assert torch.equal(torch.autograd.grad(gx.sum(), x)[0], torch.zeros_like(x))


def test_ties_of_a_global_maximum_all_receive_the_gradient():
    x = torch.tensor([[1.0, 7, 7]], requires_grad=True)
    for ties, expected in (("all", [0.0, 1, 1]), ("first", [0.0, 1, 0]), ("split", [0, 0.5, 0.5])):
        y = ct.global_max_pool(x, spatial_dims=1, ties=ties)
        assert torch.autograd.grad(y.sum(), x)[0].tolist() == [expected]


def test_an_infinite_gradient_reaches_the_winner_and_nothing_else():
    x = torch.tensor([[[1.0, 3, 2, 0]]], requires_grad=True)
    y = ct.max_pool1d(x, 2)
    assert torch.autograd.grad(y, x, torch.tensor([[[torch.inf, 1.0]]]))[0].tolist() == [[[0, torch.inf, 1, 0]]]


def test_a_maximum_keeps_a_byte_an_output_and_an_average_nothing():
    kept = []

    def keep(tensor):
        kept.append(tensor)
        return tensor

    x = torch.randn(2, 3, 16, 16, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        y = ct.max_pool2d(x, 2)
        assert [(t.dtype, t.numel()) for t in kept] == [(torch.uint8, y.numel())]
        kept.clear()
        ct.avg_pool2d(x, 2)
        assert kept == []


def test_what_a_training_step_keeps_is_at_most_half_of_what_torch_keeps():
    def bytes_kept(pool):
        kept = {}

        def keep(tensor):
            kept[tensor.data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        x = torch.randn(1, 4, 32, 32, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            y = pool(x)
        # What is there after the forward pass: the input, the output, and what the pool keeps beside them.
        kept[x.data_ptr()] = x.untyped_storage().nbytes()
        return sum(kept.values()) - x.untyped_storage().nbytes() + y.untyped_storage().nbytes()

    ours, theirs = bytes_kept(lambda x: ct.max_pool2d(x, 2)), bytes_kept(lambda x: torch.nn.functional.max_pool2d(x, 2))
    assert 2 * ours <= theirs


def test_checkpointing_and_gradients_by_several_threads():
    import threading

    x = torch.randn(2, 2, 8, 8, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(ct.max_pool2d(x, 2).sin().sum(), x)
    y = torch.utils.checkpoint.checkpoint(lambda t: ct.max_pool2d(t, 2).sin(), x, use_reentrant=False)
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], expected)
    results = [None] * 4

    def work(i):
        results[i] = torch.autograd.grad(ct.max_pool2d(x, 2).sin().sum(), x)[0]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(result, expected) for result in results)


@pytest.mark.parametrize("pool", [ct.max_pool2d, ct.avg_pool2d])
def test_gradients_of_every_form_are_those_of_an_ordinary_one(pool):
    """Nodes of autograd compute ordinary gradients in one step, and ask torch for all others."""
    x = torch.randn(2, 3, 8, 8, requires_grad=True)
    y = pool(x, 3, 2, 1)
    gy = torch.randn_like(y)
    (expected,) = torch.autograd.grad(y, x, gy, retain_graph=True)
    forms = [gy.to(memory_format=torch.channels_last), gy.expand(1, *gy.shape)[0], gy.flip(0).flip(0), gy.neg().neg()]
    for form in [*forms, torch.nn.Parameter(gy)]:
        (gx,) = torch.autograd.grad(y, x, form, retain_graph=True)
        assert torch.equal(gx, expected) and gx.stride() == x.stride()
    (gx,) = torch.autograd.grad(y.sum(), x, retain_graph=True)  # of ones that are one number in memory
    assert torch.equal(gx, torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)[0])
    (gx,) = torch.autograd.grad(y, x, gy.clone().requires_grad_(), create_graph=True)
    assert torch.equal(gx, expected) and gx.grad_fn is not None
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(gy, gy)
        (gx,) = torch.autograd.grad(y, x, dual, retain_graph=True)
        assert torch.equal(torch.autograd.forward_ad.unpack_dual(gx).tangent, expected)
    batch = torch.stack([gy, 2 * gy])
    (gx,) = torch.autograd.grad(y, x, batch, retain_graph=True, is_grads_batched=True)
    assert torch.equal(gx, torch.stack([expected, 2 * expected]))


def test_a_graph_that_was_freed_says_so():
    x = torch.randn(2, 3, 8, 8, requires_grad=True)
    y = ct.max_pool2d(x, 2).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_hooks_on_saved_tensors_see_the_winners():
    x = torch.randn(2, 3, 8, 8, requires_grad=True)
    gy = torch.randn(2, 3, 4, 4)
    (expected,) = torch.autograd.grad(ct.max_pool2d(x, 2), x, gy)
    kept = []

    def pack(tensor):
        kept.append(tensor.numpy().copy())
        return len(kept) - 1

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda i: torch.from_numpy(kept[i])):
        y = ct.max_pool2d(x, 2)
    assert torch.equal(torch.autograd.grad(y, x, gy)[0], expected)
    assert [array.dtype.name for array in kept] == ["uint8"]
