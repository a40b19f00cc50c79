"""`replace`: cenote's pooling modules in the place of a model's own."""

from __future__ import annotations

from typing import NamedTuple

from torch import nn

from . import _modules

_MODULES: dict[type[nn.Module], type[nn.Module]] = {
    getattr(nn, name): getattr(_modules, name)
    for name in dir(nn)
    if name.rstrip("123d").endswith("Pool") and hasattr(_modules, name)
}
_OURS = set(_MODULES.values())


class Swap(NamedTuple):
    """A module of a model: its name there, what it is, and why it stayed as it was, if it did."""

    name: str
    module: nn.Module
    reason: str | None


class Swaps(list[Swap]):
    """What `replace` did: the modules that are cenote's now; `left` are the others that pool."""

    left: list[Swap]

    def __init__(self, swapped: list[Swap], left: list[Swap]) -> None:
        super().__init__(swapped)
        self.left = left

    def __repr__(self) -> str:
        lines = [f"{len(self)} pooling module{'' if len(self) == 1 else 's'} replaced"]
        lines += [f"  {swap.name or '(the model)'}: {swap.module}" for swap in self]
        if self.left:
            lines.append(f"{len(self.left)} left")
            lines += [f"  {swap.name or '(the model)'}: {swap.module}: {swap.reason}" for swap in self.left]
        return "\n".join(lines)


def _why_left(module: nn.Module) -> str | None:
    """Why a module that pools stays as it is, or None if it can be replaced."""
    kind = type(module)
    if kind not in _MODULES:
        ours = next((base for base in _MODULES if isinstance(module, base)), None)
        return f"a subclass of {ours.__name__} may do something else" if ours else f"cenote has no {kind.__name__}"
    if isinstance(module, nn.modules.pooling._LPPoolNd):
        if module.norm_type < 1:
            return "cenote has no norms below 1"
        if module.norm_type % 2 != 0:
            return "PyTorch's sums x**p with its sign where p is not even, cenote's sums |x|**p"
        if module.ceil_mode:
            return "PyTorch's scales windows that ceil_mode cuts off, cenote's does not"
    return None


def replace(model: nn.Module) -> Swaps:
    """Makes the pooling modules of `model` cenote's, in place, and says which.

    Parameters, buffers, hooks and names stay; results are the same but for the last bits of averages. Modules whose results
    would differ otherwise are left, and so is what `forward` methods call from `torch.nn.functional`.

    >>> import torch, cenote.torch
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.MaxPool2d(2), torch.nn.FractionalMaxPool2d(2, 5))
    >>> cenote.torch.replace(model)
    1 pooling module replaced
      1: MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)
    1 left
      2: FractionalMaxPool2d(): cenote has no FractionalMaxPool2d
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"replace: model is of type {type(model).__name__}; give a torch.nn.Module")
    swapped: list[Swap] = []
    left: list[Swap] = []
    for name, module in model.named_modules():
        kind = type(module)
        pools = isinstance(module, tuple(_MODULES)) or (
            kind.__module__ == nn.modules.pooling.__name__ and "Unpool" not in kind.__name__
        )
        if not pools or kind in _OURS:
            continue
        reason = _why_left(module)
        (swapped if reason is None else left).append(Swap(name, module, reason))
    for swap in swapped:
        swap.module.__class__ = _MODULES[type(swap.module)]  # a subclass without state of its own
    return Swaps(swapped, left)
