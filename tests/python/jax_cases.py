"""The calls that the tests of cenote.jax have in common: every function, with arguments that matter."""

import cenote
import cenote.jax
import numpy as np
import pytest

# name, arguments after x. They pool the last two axes of at least 5x6 cells.
CALLS = [
    ("max_pool", ((3, 2),), {}),
    ("max_pool", ((3, 3), 2, 1), {}),
    ("max_pool", ((2, 3), (1, 2), ((0, 1), (2, 0)), (2, 1)), {"ceil_mode": True}),
    ("max_pool", (3, 1, "same"), {"axes": (-2, -1), "ties": "all"}),
    ("max_pool", (2, 1), {"axes": (-1, 1), "ties": "split"}),
    ("min_pool", ((3, 3), 2, 1), {}),
    ("min_pool", ((2, 2),), {"ties": "split"}),
    ("avg_pool", ((3, 3), 2, 1), {}),
    ("avg_pool", ((3, 3), 2, 1), {"count_include_pad": False, "ceil_mode": True}),
    ("avg_pool", ((2, 2), 1), {"divisor_override": -3, "axes": (1, 3)}),
    ("sum_pool", ((3, 2), 1, 0, (1, 2)), {}),
    ("smooth_max_pool", ((3, 3), 2, 1), {"beta": 1.5}),
    ("smooth_max_pool", ((3, 3), 2, 1), {"beta": -2, "padding_mode": "ignore"}),
    ("lp_pool", ((3, 3), 2, 1), {"p": 2}),
    ("lp_pool", ((2, 2), 1), {"p": 3.5}),
    ("lp_pool", ((2, 2),), {"p": 1}),
    ("adaptive_max_pool", ((2, 4),), {}),
    ("adaptive_min_pool", (3,), {"axes": (1,), "ties": "all"}),
    ("adaptive_avg_pool", ((7, 2),), {}),
    ("adaptive_sum_pool", ((3, 4),), {}),
    ("adaptive_smooth_max_pool", ((2, 3),), {"beta": 0.5}),
    ("adaptive_lp_pool", ((2, 3),), {"p": 2}),
    ("global_max_pool", (), {"spatial_dims": 2}),
    ("global_min_pool", (), {"axes": (0, 3), "keepdims": False, "ties": "split"}),
    ("global_avg_pool", (), {"axes": (1,), "keepdims": False}),
    ("global_sum_pool", (), {"spatial_dims": 1}),
    ("global_smooth_max_pool", (), {"spatial_dims": 2, "keepdims": False, "beta": 2.0}),
    ("global_lp_pool", (), {"axes": (2, 3), "p": 4}),
]
IDS = [f"{name}-{i}" for i, (name, _, _) in enumerate(CALLS)]


class Call:
    """One of CALLS: as a function for jax, and what numpy's functions say of it."""

    def __init__(self, name, arguments, options):
        self.name, self.arguments, self.options = name, arguments, options

    def jax(self, x):
        return getattr(cenote.jax, self.name)(x, *self.arguments, **self.options)

    def value(self, x):
        return getattr(cenote, self.name)(x, *self.arguments, **self.options)

    def jvp(self, x, dx):
        return getattr(cenote, self.name + "_jvp")(x, dx, *self.arguments, **self.options)

    def vjp(self, x, gy):
        return getattr(cenote, self.name + "_vjp")(x, gy, *self.arguments, **self.options)


each_call = pytest.mark.parametrize("call", [Call(*each) for each in CALLS], ids=IDS)

SHAPE = (2, 3, 5, 6)


def with_ties_and_nans(random, dtype=np.float32):
    """Few different numbers, both zeros, infinities and NaN: where winners are hard to agree on."""
    choices = np.array([-2, -1, -0.0, 0.0, 1, 2, 3, np.inf, -np.inf, np.nan])
    chances = np.array([4, 4, 4, 4, 4, 4, 4, 0.3, 0.3, 0.3])
    return random.choice(choices, SHAPE, p=chances / chances.sum()).astype(dtype)
