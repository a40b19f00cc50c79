"""Modules of cenote.torch in the place of torch.nn's, and replace()."""

import copy
import inspect
import pickle

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import cenote.torch as ct  # noqa: E402

NAMES = [
    f"{kind}{rank}d" for kind in ("MaxPool", "AvgPool", "LPPool", "AdaptiveMaxPool", "AdaptiveAvgPool") for rank in (1, 2, 3)
]
SHAPES = {"1": (2, 3, 9), "2": (2, 3, 9, 8), "3": (1, 2, 5, 6, 7)}


def arguments(name):
    if name.startswith("LP"):
        return (2, 3, 2)
    return (2,) if name.startswith("Adaptive") else (3, 2, 1)


@pytest.mark.parametrize("name", NAMES)
def test_modules_are_those_of_torch(name):
    ours, theirs = getattr(ct, name), getattr(nn, name)
    assert issubclass(ours, theirs) and inspect.signature(ours) == inspect.signature(theirs)
    a, b = ours(*arguments(name)), theirs(*arguments(name))
    assert repr(a) == repr(b) and a.state_dict() == b.state_dict()
    x = torch.rand(SHAPES[name[-2]])
    torch.testing.assert_close(a(x), b(x))
    for other in (copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert type(other) is ours and torch.equal(other(x), a(x))


@pytest.mark.parametrize("name", [name for name in NAMES if "MaxPool" in name])
def test_modules_return_indices(name):
    a, b = (getattr(module, name)(2, return_indices=True) for module in (ct, nn))
    x = torch.rand(SHAPES[name[-2]])
    for ours, theirs in zip(a(x), b(x)):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_smooth_maxima(rank):
    module = getattr(ct, f"SmoothMaxPool{rank}d")(2, beta=3.0)
    x = torch.rand(SHAPES[str(rank)])
    assert torch.equal(module(x), getattr(ct, f"smooth_max_pool{rank}d")(x, 2, beta=3.0))
    hard = getattr(ct, f"SmoothMaxPool{rank}d")(2, beta=1e6)(x)
    torch.testing.assert_close(hard, getattr(nn.functional, f"max_pool{rank}d")(x, 2), atol=1e-4, rtol=0)
    assert repr(module) == (
        f"SmoothMaxPool{rank}d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False, beta=3.0, "
        "padding_mode='zeros')"
    )
    assert not module.state_dict()


def test_a_smooth_maximum_complains_when_it_is_made():
    with pytest.raises(ValueError, match="beta"):
        ct.SmoothMaxPool2d(2, beta=0.0)
    with pytest.raises(ValueError, match="padding_mode"):
        ct.SmoothMaxPool2d(2, beta=1.0, padding_mode="edge")
    with pytest.raises(TypeError, match="beta"):
        ct.SmoothMaxPool2d(2)


class Block(nn.Module):
    """A part of a network as torchvision builds them."""

    def __init__(self, channels):
        super().__init__()
        self.left = nn.Sequential(nn.Conv2d(channels, 4, 1), nn.ReLU())
        self.right = nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(channels, 4, 1))

    def forward(self, x):
        return torch.cat([self.left(x), self.right(x)], 1)


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1, ceil_mode=True), Block(8),
        nn.AvgPool2d(2, count_include_pad=False), nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(8, 5),
    )  # fmt: skip


def test_a_network_computes_and_learns_the_same_after_replace():
    before, after = network(), network()
    swaps = ct.replace(after)
    assert [swap.name for swap in swaps] == ["3", "4.right.0", "5", "6"] and not swaps.left
    assert str(swaps).splitlines()[0] == "4 pooling modules replaced"
    assert str(swaps).splitlines()[1] == f"  3: {before[3]}"
    x = torch.randn(2, 3, 32, 32)
    after.load_state_dict(before.state_dict())
    assert repr(before) == repr(after)
    for model in (before, after):
        model(x).square().sum().backward()
    torch.testing.assert_close(after(x), before(x))
    for a, b in zip(after.parameters(), before.parameters()):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-5)
    assert ct.replace(after) == [] and ct.replace(after).left == []


def test_replace_keeps_hooks_sharing_and_mode():
    pool, calls = nn.MaxPool2d(2), []
    model = nn.ModuleDict({"a": pool, "b": nn.Sequential(pool)}).eval()
    pool.register_forward_hook(lambda *_: calls.append(1))
    assert len(ct.replace(model)) == 1
    assert model["a"] is model["b"][0] and type(pool) is ct.MaxPool2d and not pool.training
    pool(torch.ones(1, 1, 2, 2))
    assert calls == [1]


def test_replace_of_a_pooling_module_itself():
    pool = nn.AvgPool1d(2)
    assert [swap.name for swap in ct.replace(pool)] == [""] and type(pool) is ct.AvgPool1d


def test_replace_leaves_what_would_differ_and_says_why():
    class Own(nn.MaxPool2d):
        def forward(self, x):
            return super().forward(x) + 1

    model = nn.Sequential(
        nn.LPPool2d(2, 2), nn.LPPool2d(3, 2), nn.LPPool2d(2, 2, ceil_mode=True), Own(2), nn.FractionalMaxPool2d(2, 3),
        nn.MaxUnpool2d(2),
    )  # fmt: skip
    swaps = ct.replace(model)
    assert [swap.name for swap in swaps] == ["0"]
    assert {swap.name: swap.reason for swap in swaps.left} == {
        "1": "PyTorch's sums x**p with its sign where p is not even, cenote's sums |x|**p",
        "2": "PyTorch's scales windows that ceil_mode cuts off, cenote's does not",
        "3": "a subclass of MaxPool2d may do something else",
        "4": "cenote has no FractionalMaxPool2d",
    }
    assert "4 left" in str(swaps)
    with pytest.raises(TypeError, match="^replace: model is of type function; give a torch.nn.Module"):
        ct.replace(lambda x: x)


def test_every_name_is_documented_and_its_example_runs():
    import doctest
    import importlib

    for name in ("_torch_names", "_any_rank", "_replace", "_modules"):
        results = doctest.testmod(importlib.import_module(f"cenote.torch.{name}"))
        assert results.failed == 0 and results.attempted > 0
    for name in ct.__all__:
        thing = getattr(ct, name)
        assert thing.__doc__, name
        if inspect.isfunction(thing):
            assert ">>>" in thing.__doc__, name


def test_signatures_are_those_of_the_functions_for_numpy_arrays():
    import cenote

    for name in ct.__all__:
        ours, theirs = getattr(ct, name), getattr(cenote, name, None)
        if inspect.isfunction(ours) and theirs is not None:
            expected = {key: p.default for key, p in inspect.signature(theirs).parameters.items() if key != "out"}
            assert {key: p.default for key, p in inspect.signature(ours).parameters.items()} == expected, name
