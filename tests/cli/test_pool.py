"""`cenote pool`: every operator with every option against NumPy, and against what PyTorch computed."""
import itertools
import unittest

import numpy as np

from support import Scratch, pooled, rounded_mean


def smooth(beta, zeros):
    """log-sum-exp over the taps, where padding adds exp(0) each if it counts (S1)."""
    def reduce(taps, exists):
        all_taps = np.concatenate([taps, np.zeros(exists - len(taps))]) if zeros else taps
        if len(all_taps) == 0:
            return 0.0
        shift = all_taps.max() if beta > 0 else all_taps.min()
        return shift + np.log(np.exp(beta * (all_taps - shift)).sum()) / beta
    return reduce


OPERATORS = {
    ("max",): lambda taps, exists: max(taps) if len(taps) else 0,
    ("min",): lambda taps, exists: min(taps) if len(taps) else 0,
    ("sum",): lambda taps, exists: sum(taps),
    ("average",): lambda taps, exists: sum(taps) / exists if len(taps) else 0,
    ("average", "--divisor", "real"): lambda taps, exists: sum(taps) / len(taps) if len(taps) else 0,
    ("average", "--divisor", "-3"): lambda taps, exists: sum(taps) / -3 if len(taps) else 0,
    ("smooth-max", "--beta", "2"): smooth(2, True),
    ("smooth-max", "--beta", "-1.5", "--pads", "ignore"): smooth(-1.5, False),
    ("lp",): lambda taps, exists: np.sqrt((np.asarray(taps) ** 2).sum()) if len(taps) else 0,
    ("lp", "--p", "3"): lambda taps, exists: (np.abs(taps) ** 3).sum() ** (1 / 3) if len(taps) else 0,
}

WINDOWS = [
    (["-k", "2x2"], dict(kernel=[2, 2])),
    (["-k", "3x2", "-s", "2x1", "-p", "1x0:1"], dict(kernel=[3, 2], stride=[2, 1], low=[1, 0], high=[1, 1])),
    (["-k", "2", "-a", "1,2", "-d", "2", "-s", "1"], dict(kernel=[2, 2], dilation=[2, 2], stride=[1, 1])),
    (["-k", "3,3", "-s", "2", "--ceil"], dict(kernel=[3, 3], stride=[2, 2], ceil=True)),
    (["-k", "3x3", "-s", "1", "-p", "same"], dict(kernel=[3, 3], stride=[1, 1], low=[1, 1], high=[1, 1])),
    (["-k", "2x2", "-s", "1", "-p", "same-lower"], dict(kernel=[2, 2], stride=[1, 1], low=[1, 1], high=[0, 0])),
    (["-k", "2x2", "-p", "valid"], dict(kernel=[2, 2])),
]


class Operators(Scratch):
    def test_every_operator_with_every_window(self):
        x = self.random.normal(size=(2, 6, 8))
        for (operator, reduce), (arguments, windows) in itertools.product(OPERATORS.items(), WINDOWS):
            with self.subTest(operator=operator, arguments=arguments):
                expected = pooled(x, [1, 2], reduce=reduce, **windows)
                np.testing.assert_allclose(self.pool(x, *operator, *arguments), expected, rtol=1e-12, atol=1e-12)

    def test_integers_are_exact_and_averages_round_half_to_even(self):
        for dtype in ("i1", "u1", "i8", "u8"):
            limits = np.iinfo(dtype)
            x = self.random.integers(limits.min, limits.max, (5, 6), dtype, endpoint=True)
            x.flat[:4] = limits.max
            for operator, reduce in (("max", lambda t, e: max(t)), ("min", lambda t, e: min(t)), ("average", rounded_mean),
                                     ("sum", lambda t, e: min(max(sum(t), limits.min), limits.max))):
                expected = pooled(x, [0, 1], [2, 3], reduce).astype(dtype)
                self.assert_same(self.pool(x, operator, "-k", "2x3"), expected)

    def test_adaptive_and_global_windows(self):
        x = self.random.normal(size=(3, 7, 10))
        y = self.pool(x, "average", "--adaptive", "3x4")
        for i, j in itertools.product(range(3), range(4)):
            block = x[:, i * 7 // 3:-(-(i + 1) * 7 // 3), j * 10 // 4:-(-(j + 1) * 10 // 4)]
            np.testing.assert_allclose(y[:, i, j], block.mean((1, 2)), rtol=1e-12)
        self.assert_same(self.pool(x, "max", "--global", "-a", "1,2"), x.max((1, 2), keepdims=True))
        self.assert_same(self.pool(x, "max", "--global", "-a", "-2,-1", "--drop"), x.max((1, 2)))
        self.assert_same(self.pool(x, "min", "--global", "--drop"), x.min())

    def test_channels_last_leaves_the_last_axis_alone(self):
        x = self.random.normal(size=(4, 6, 3))
        expected = x.reshape(2, 2, 3, 2, 3).max((1, 3))
        self.assert_same(self.pool(x, "max", "-k", "2x2", "--channels-last"), expected)
        self.assert_same(self.pool(x, "max", "-k", "2", "--channels-last"), expected)

    def test_special_values(self):
        x = np.array([[np.nan, 1, -np.inf, -np.inf], [2, 3, -np.inf, -np.inf]])
        self.assert_same(self.pool(x, "max", "-k", "2x2"), np.array([[np.nan, -np.inf]]))
        self.assert_same(self.pool(np.zeros((1, 1)), "max", "-k", "1x1", "-p", "2"), np.zeros((5, 5)))

    def test_threads_and_targets_change_nothing(self):
        x = self.random.normal(size=(40, 33, 21)).astype("f4")
        first = self.pool(x, "average", "-k", "3x3x3", "-s", 1)
        self.assert_same(self.pool(x, "average", "-k", "3x3x3", "-s", 1, "-t", 1), first)
        self.assert_same(self.pool(x, "average", "-k", "3x3x3", "-s", 1, "--threads", 3), first)


class Arguments(Scratch):
    def refuse(self, *arguments):
        np.save(self.path("x.npy"), np.zeros((4, 6), "f4"))
        operator, *rest = arguments
        line = self.refused(2, "pool", operator, self.path("x.npy"), "-o", self.path("y.npy"), *rest)
        self.assertFalse(self.path("y.npy").exists())
        return line

    def test_each_mistake_is_named_with_what_is_legal(self):
        for arguments, words in [
            (("mox", "-k", "2x2"), ("'mox'", "smooth-max")),
            (("max",), ("--kernel", "--adaptive", "--global")),
            (("max", "-k", "2x2", "--global"), ("--kernel", "--global")),
            (("max", "-k", "two"), ("--kernel", "'two'", "3x3")),
            (("max", "-k", "2x2", "-p", "1:2:3"), ("--padding", "'1:2:3'", "same")),
            (("max", "-k", "2x2", "--beta", "1"), ("--beta", "smooth-max")),
            (("average", "-k", "2x2", "--ties", "all"), ("--ties", "max and min")),
            (("max", "-k", "2x2", "--ties", "some"), ("--ties", "'some'", "split")),
            (("average", "-k", "2x2", "--divisor", "0"), ("divisor", "0")),
            (("average", "-k", "2x2", "--divisor", "half"), ("--divisor", "'half'", "real")),
            (("smooth-max", "-k", "2x2"), ("--beta",)),
            (("smooth-max", "-k", "2x2", "--beta", "0"), ("beta is 0",)),
            (("lp", "-k", "2x2", "--p", "0.5"), ("p is 0.5",)),
            (("max", "--global", "--stride", "2"), ("--stride", "--kernel")),
            (("max", "-k", "2x2", "--drop"), ("--drop", "--global")),
            (("max", "-k", "9x2"), ("kernel spans 9 cells on axis 0", "has 4")),
            (("max", "-k", "2x2x2"), ("kernel names 3 axes", "has 2")),
            (("max", "-k", "2"), ("kernel is the single number 2", "axes")),
            (("max", "-k", "2", "-a", "5"), ("axis 5",)),
            (("max", "-k", "2x2", "-s", "0"), ("stride is 0", "at least 1")),
            (("max", "-k", "2x2", "--threads", "-1"), ("--threads is -1", "at least 0")),
            (("max", "-k", "2x2", "--target", "abacus"), ("--target", "abacus", "this machine has")),
            (("max", "-k", "2x2", "--threads", "some"), ("--threads", "'some'", "number")),
            (("max", "-k", "2x2", "-k", "3x3"), ("--kernel", "more than once")),
            (("max", "-k", "2x2", "--memory", "much"), ("--memory", "'much'")),
            (("max", "-k", "2x2", "--memory", "0"), ("--memory", "'0'")),
            (("max", "-k", "2x2", "--format", "gif"), ("'gif'", "png")),
            (("max", "-k", "2x2", "--colour"), ("--colour", "--help")),
        ]:
            with self.subTest(arguments=arguments):
                line = self.refuse(*arguments)
                for word in words:
                    self.assertIn(word, line)


if __name__ == "__main__":
    unittest.main()
