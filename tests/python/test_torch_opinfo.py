"""PyTorch's own sample inputs and error inputs of its pooling functions, through cenote.torch."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

import cenote.torch as ct  # noqa: E402

OPS = {op.name.removeprefix("nn.functional."): op for op in op_db if hasattr(ct, op.name.removeprefix("nn.functional."))}


def test_every_pooling_function_of_torch_that_has_samples_is_here():
    assert sorted(OPS) == sorted(
        f"{name}{rank}d" for name in ("max_pool", "avg_pool", "adaptive_max_pool", "adaptive_avg_pool") for rank in (1, 2, 3)
    )


@pytest.mark.parametrize("name", sorted(OPS))
def test_samples(name):
    op, ours = OPS[name], getattr(ct, name)
    compared = 0
    for sample in op.sample_inputs("cpu", torch.float64, requires_grad=True):
        theirs = op.op(sample.input, *sample.args, **sample.kwargs)
        if theirs is None or (isinstance(theirs, torch.Tensor) and 0 in theirs.shape[-int(name[-2]) :]):
            continue
        got = ours(sample.input, *sample.args, **sample.kwargs)
        torch.testing.assert_close(got, theirs)
        value, their_value = (r[0] if isinstance(r, tuple) else r for r in (got, theirs))
        gy = torch.randn_like(value)
        torch.testing.assert_close(
            torch.autograd.grad(value, sample.input, gy), torch.autograd.grad(their_value, sample.input, gy)
        )
        compared += 1
    assert compared > 3


@pytest.mark.parametrize("name", sorted(OPS))
def test_what_torch_refuses(name):
    ours = getattr(ct, name)
    for error in OPS[name].error_inputs("cpu"):
        x, arguments = error.sample_input.input, (error.sample_input.args, error.sample_input.kwargs)
        if x.dim() > 1 and 0 in x.shape and 0 not in x.shape[-int(name[-2]) :] and x.dim() == int(name[-2]) + 1:
            # No channels are legal here, with an empty result (G7): what else is wrong must be named.
            if "optional 0 dim" in str(error.error_regex) or "non-batch" in str(error.error_regex):
                assert ours(x, *arguments[0], **arguments[1]).numel() == 0
                continue
        with pytest.raises((ValueError, TypeError), match=f"^{name}: "):
            ours(x, *arguments[0], **arguments[1])
