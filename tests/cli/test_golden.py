"""The command against PyTorch: cases of tests/golden/golden.bin, whose format make_golden.py describes."""
import struct
import unittest

import numpy as np

from support import HERE, Scratch

EVERY = 47  # a prime: operators, ranks and options come in turn
OPERATORS = ["max", "average", "max", "average", "lp", "smooth-max"]


class File:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, code):
        values = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return values

    def one(self, code):
        return self.take(code)[0]

    def array(self, shape):
        kind = self.one("B")
        values = np.array(self.take(f"{int(np.prod(shape))}{'bhfd'[kind]}"), np.float64)
        if kind < 2:
            codes, most = values, 127 if kind == 0 else 32767
            values = codes / 8
            for offset, special in enumerate((np.nan, np.inf, -np.inf, -0.0)):
                values[codes == most - offset] = special
        return values.reshape(shape)


def cases():
    file = File((HERE.parent / "golden" / "golden.bin").read_bytes())
    assert file.take("8s") == (b"CENOTEG1",)
    for _ in range(file.one("I")):
        operator, rank, batch = file.take("3B")
        file.one("I")
        dims = batch + 1 + rank
        shape, outputs = file.take(f"{dims}B"), file.take(f"{dims}B")
        sizes = lambda values: "x".join(map(str, values))
        numbers = lambda: file.take(f"{rank}B")
        if operator in (2, 3):
            output = numbers()
            arguments = ["--adaptive", sizes(o or n for o, n in zip(output, shape[-rank:]))]
        else:
            kernel, stride, low, high, dilation = (numbers() for _ in range(5))
            arguments = ["--kernel", sizes(kernel), "--dilation", sizes(dilation),
                         "--padding", sizes(f"{a}:{b}" for a, b in zip(low, high))]
            arguments += ["--stride", sizes(stride)] if any(stride) else []
            arguments += ["--ceil"] if file.one("B") else []
        if rank == 1:
            arguments += ["--axes", str(dims - 1)]  # one number would not say which axis
        if operator == 1:
            padded, divisor = file.one("B"), file.one("b")
            arguments += ["--divisor", str(divisor) if divisor else "padded" if padded else "real"]
        if operator == 4:
            arguments += ["--p", repr(file.one("d"))]
        if operator == 5:
            arguments += ["--beta", repr(file.one("d")), "--pads", ["zeros", "ignore"][file.one("B")]]
        x, dx, gy, y, dy, gx = (file.array(s) for s in (shape, shape, outputs, outputs, outputs, shape))
        winners = np.array(file.take(f"{int(np.prod(outputs))}B")).reshape(outputs) if operator in (0, 2) else None
        yield OPERATORS[operator], arguments, dict(x=x, dx=dx, gy=gy), y, dy, gx, winners
    assert file.take("4s") == (b"END!",)


class Golden(Scratch):
    def test_values_derivatives_and_winners(self):
        compared = 0
        for number, (operator, arguments, arrays, y, dy, gx, winners) in enumerate(cases()):
            if number % EVERY:
                continue
            compared += 1
            for name, array in arrays.items():
                np.save(self.path(name + ".npy"), array)
            x, out = self.path("x.npy"), self.path("out.npy")
            close = (lambda got, expected: np.testing.assert_array_equal(got, expected)) if winners is not None else (
                lambda got, expected: np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13))
            with self.subTest(number=number, operator=operator, arguments=arguments):
                self.cenote("pool", operator, x, "-o", out, *arguments)
                close(np.load(out), y)
                self.cenote("grad", operator, x, "--jvp", self.path("dx.npy"), "-o", out, *arguments)
                close(np.load(out), dy)
                self.cenote("grad", operator, x, "--vjp", self.path("gy.npy"), "-o", out, *arguments)
                close(np.load(out), gx)
                if winners is not None:
                    self.cenote("grad", operator, x, "--winners", out, "--flat", *arguments)
                    np.testing.assert_array_equal(np.load(out), winners)
        self.assertGreater(compared, 80)


if __name__ == "__main__":
    unittest.main()
