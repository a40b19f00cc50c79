"""Every function of cenote.torch with arguments and an input to try it on: what the tests about torch share."""

from typing import Any, Callable, NamedTuple

import torch

import cenote.torch as ct


class Example(NamedTuple):
    name: str
    call: Callable[[torch.Tensor], Any]
    shape: tuple[int, ...]

    def input(self, dtype=torch.float64, seed=0):
        """Numbers without ties, none of them near 0: where p-norms bend sharply."""
        generator = torch.Generator().manual_seed(seed)
        count = int(torch.tensor(self.shape).prod())
        order = torch.randperm(count, generator=generator).to(dtype)
        signs = torch.randint(0, 2, (count,), generator=generator).to(dtype) * 2 - 1
        return ((0.5 + 2 * order / count) * signs).reshape(self.shape)


SHAPES = {1: (2, 2, 7), 2: (1, 2, 5, 4), 3: (1, 1, 3, 4, 3)}
OPTIONS = {"smooth_max": {"beta": 1.5}, "lp": {"p": 3.0}}


def _examples():
    for rank, shape in SHAPES.items():
        named = lambda name: getattr(ct, f"{name}{rank}d")
        calls = {
            "max_pool": lambda x, f=named("max_pool"): f(x, 3, 2, 1, ceil_mode=True),
            "avg_pool": lambda x, f=named("avg_pool"): f(x, 3, 2, 1, count_include_pad=False),
            "lp_pool": lambda x, f=named("lp_pool"): f(x, 4.0, 2, 1),
            "smooth_max_pool": lambda x, f=named("smooth_max_pool"): f(x, 3, 2, 1, beta=1.5),
            "adaptive_max_pool": lambda x, f=named("adaptive_max_pool"): f(x, 2),
            "adaptive_avg_pool": lambda x, f=named("adaptive_avg_pool"): f(x, 2),
        }
        for name, call in calls.items():
            yield Example(f"{name}{rank}d", call, shape)
    for op in ("max", "min", "avg", "sum", "smooth_max", "lp"):
        more = OPTIONS.get(op, {})
        sliding, adaptive, whole = (getattr(ct, f"{kind}{op}_pool") for kind in ("", "adaptive_", "global_"))
        yield Example(
            f"{op}_pool", lambda x, f=sliding, m=more: f(x, (2, 3), 2, [(0, 1), (1, 1)], axes=(1, -1), **m), (1, 4, 2, 5)
        )
        yield Example(f"adaptive_{op}_pool", lambda x, f=adaptive, m=more: f(x, (2, 3), **m), (2, 3, 5))
        yield Example(f"global_{op}_pool", lambda x, f=whole, m=more: f(x, axes=(1,), keepdims=False, **m), (2, 4, 3))


EXAMPLES = list(_examples())
