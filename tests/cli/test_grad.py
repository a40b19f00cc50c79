"""`cenote grad`: derivatives against NumPy and against each other."""
import io
import os
import resource
import struct
import unittest

import numpy as np

from support import CENOTE, HERE, Scratch


class Grad(Scratch):
    def grad(self, operator, x, *arguments, **files):
        """Runs grad with arrays saved under the options' names, and returns what it wrote to -o."""
        np.save(self.path("x.npy"), x)
        options = []
        for name, array in files.items():
            np.save(self.path(name + ".npy"), array)
            options += [f"--{name}", self.path(name + ".npy")]
        self.cenote("grad", operator, self.path("x.npy"), *options, "-o", self.path("out.npy"), *arguments)
        return np.load(self.path("out.npy"))

    def test_max_sends_the_gradient_to_the_winner(self):
        x = np.array([[1.0, 5, 2, 0], [4, 3, 8, 6]])
        gx = self.grad("max", x, "-k", "2x2", vjp=np.array([[10.0, 20.0]]))
        self.assert_same(gx, np.array([[0.0, 10, 0, 0], [0, 0, 20, 0]]))
        dy = self.grad("max", x, "-k", "2x2", jvp=np.arange(8.0).reshape(2, 4))
        self.assert_same(dy, np.array([[1.0, 6.0]]))

    def test_ties(self):
        x, gy = np.ones((1, 4)), np.array([[8.0]])
        for arguments, expected in (([], [8, 0, 0, 0]), (["--ties", "all"], [8, 8, 8, 8]), (["--ties", "split"], [2, 2, 2, 2])):
            self.assert_same(self.grad("max", x, "-k", "1x4", *arguments, vjp=gy), np.array([expected], float))
        self.assert_same(self.grad("max", x, "--global", vjp=gy), np.full((1, 4), 8.0))

    def test_average_and_smooth_max_spread_it_by_their_weights(self):
        x = self.random.normal(size=(4, 4))
        gy = self.random.normal(size=(2, 2))
        spread = gy.repeat(2, 0).repeat(2, 1)
        np.testing.assert_allclose(self.grad("average", x, "-k", "2x2", vjp=gy), spread / 4, rtol=1e-15)
        weights = np.exp(3 * x)
        weights /= weights.reshape(2, 2, 2, 2).sum((1, 3)).repeat(2, 0).repeat(2, 1)
        np.testing.assert_allclose(self.grad("smooth-max", x, "-k", "2x2", "--beta", "3", vjp=gy), spread * weights, rtol=1e-12)

    def test_jvp_and_vjp_are_adjoint_in_every_operator_type_and_order(self):
        for operator in (["max"], ["min"], ["average"], ["sum"], ["smooth-max", "--beta", "2"], ["lp"]):
            for dtype, order in (("f8", "C"), ("f8", "F"), (">f8", "C"), ("f4", "C")):
                with self.subTest(operator=operator, dtype=dtype, order=order):
                    x, dx = (np.asarray(self.random.normal(size=(3, 7, 6)), dtype, order=order) for _ in range(2))
                    windows = ["-k", "3x2", "-s", "2x1", "-p", "1"]
                    name, *rest = operator
                    dy = self.grad(name, x, *rest, *windows, jvp=dx)
                    gy = self.random.normal(size=dy.shape).astype(dtype)
                    gx = self.grad(name, x, *rest, *windows, vjp=gy)
                    self.assertEqual((gx.shape, gx.dtype), (x.shape, x.dtype.newbyteorder("=")))
                    left, right = (dy.astype("f8") * gy).sum(), (dx * gx.astype("f8")).sum()
                    np.testing.assert_allclose(left, right, rtol=1e-10 if "8" in dtype else 1e-4, atol=1e-12)

    def test_winners_in_the_window_and_in_the_array(self):
        x = self.random.normal(size=(2, 6, 6)).astype("f4")
        np.save(self.path("x.npy"), x)
        self.cenote("grad", "max", self.path("x.npy"), "-k", "3x2", "--winners", self.path("w.npy"), "--value", self.path("v.npy"))
        blocks = x.reshape(2, 2, 3, 3, 2).transpose(0, 1, 3, 2, 4).reshape(2, 2, 3, 6)
        self.assert_same(np.load(self.path("w.npy")), blocks.argmax(-1).astype("u1"))
        self.assert_same(np.load(self.path("v.npy")), blocks.max(-1))
        self.cenote("grad", "max", self.path("x.npy"), "-k", "3x2", "--winners", self.path("w.npy"), "--flat")
        flat = np.load(self.path("w.npy"))
        self.assertEqual(flat.dtype, np.int64)
        np.testing.assert_array_equal(np.take_along_axis(x.reshape(2, 36), flat.reshape(2, 6), 1).reshape(2, 2, 3), blocks.max(-1))
        self.cenote("grad", "max", self.path("x.npy"), "-k", "1x1", "-p", "1", "--winners", self.path("w.npy"), "--flat")
        self.assertEqual(np.load(self.path("w.npy"))[0, 0, 0], -1)

    def test_slices_along_axes_that_are_not_pooled_have_the_bits_of_the_whole(self):
        for order, axes in (("C", "2,3"), ("F", "0,1"), ("C", "1,2"), ("F", "1,2")):
            x, dx = (np.asarray(self.random.normal(size=(7, 5, 6, 4)), "f4", order=order) for _ in range(2))
            windows = ["-k", "3x2", "-s", "2x1", "-p", "1", "-a", axes]
            dy = self.grad("max", x, *windows, jvp=dx)
            gy = np.asarray(self.random.normal(size=dy.shape), "f4", order=order)
            for operator in (["max"], ["average"], ["smooth-max", "--beta", "2"]):
                for name, other in (("jvp", dx), ("vjp", gy)):
                    with self.subTest(order=order, axes=axes, operator=operator, verb=name):
                        whole = self.grad(operator[0], x, *operator[1:], *windows, **{name: other})
                        cut = self.grad(operator[0], x, *operator[1:], *windows, "--memory", "6K", **{name: other})
                        self.assertEqual((cut.dtype, cut.shape, cut.flags.f_contiguous), (whole.dtype, whole.shape, order == "F"))
                        self.assertEqual(cut.tobytes(), whole.tobytes())

    def winners(self, *arguments):
        self.cenote("grad", "max", self.path("x.npy"), "-k", "3x2", "-a", "0,1", "--winners", self.path("w.npy"),
                    "--value", self.path("v.npy"), *arguments)
        return np.load(self.path("w.npy")), np.load(self.path("v.npy"))

    def test_winners_and_values_in_slices_in_either_order(self):
        x = self.random.normal(size=(6, 4, 5)).astype("f4")
        np.save(self.path("x.npy"), x)
        for flat in ([], ["--flat"]):
            rows = self.winners(*flat)
            np.save(self.path("x.npy"), np.asfortranarray(x))
            for got in (self.winners(*flat), self.winners(*flat, "--memory", "1K")):
                for a, b in zip(got, rows):
                    self.assert_same(a, b)

    def test_derivatives_in_bounded_memory(self):
        name = self.path("large.npy")
        np.lib.format.open_memmap(name, "w+", np.float32, (300, 512, 512)).flush()  # 300 MB, all of it a hole
        used = self.peak_memory("grad", "average", name, "--jvp", name, "-o", self.path("y.npy"), "-k", "2x2", "--memory", "128M")
        self.assertEqual(np.load(self.path("y.npy"), mmap_mode="r").shape, (300, 256, 256))
        if "asan" not in CENOTE:  # whose own memory would count
            self.assertLess(used, 128 << 20)

    def test_a_slice_that_does_not_fit_is_refused_with_the_numbers(self):
        np.save(self.path("x.npy"), np.zeros((2, 1000, 1000)))
        line = self.refused(1, "grad", "max", self.path("x.npy"), "--value", self.path("y.npy"), "-k", "2x2", "--memory", "4M")
        for word in ("x.npy", "--memory 4.0 MB", "slice", "MB"):
            self.assertIn(word, line)
        self.assertFalse(self.path("y.npy").exists())

    def test_an_announcement_of_ten_gigabytes_takes_no_memory(self):
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (51200, 51200)}"
        said = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header
        limit = None if "asan" in CENOTE else lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        line = self.refused(1, "grad", "max", "-", "--value", self.path("y.npy"), "--global", preexec_fn=limit,
                            **self.piped(said))
        self.assertRegex(line, "standard input: (ends with|a slice takes 9.8 GB)")
        self.assertFalse(self.path("y.npy").exists())

    def piped(self, data):
        read, write = os.pipe()
        os.write(write, data)
        os.close(write)
        self.addCleanup(os.close, read)
        return {"stdin": read}

    def test_the_input_may_come_by_a_pipe(self):
        x = self.random.normal(size=(3, 4, 4))
        np.save(self.path("x.npy"), x)
        out = self.cenote("grad", "max", "-", "--value", "-", "-k", "2x2", "--memory", "1K", **self.piped(self.path("x.npy").read_bytes()))
        self.assert_same(np.load(io.BytesIO(out)), x.reshape(3, 2, 2, 2, 2).max((2, 4)))

    def test_mistakes(self):
        np.save(self.path("x.npy"), np.zeros((4, 4)))
        np.save(self.path("i.npy"), np.zeros((4, 4), "i4"))
        np.save(self.path("f.npy"), np.zeros((2, 2), "f4"))
        x, out = self.path("x.npy"), self.path("y.npy")
        windows = ["-k", "2x2"]
        for code, arguments, word in [
            (2, ["max", x, *windows], "nothing to do"),
            (2, ["max", x, *windows, "--vjp", x], "--output"),
            (2, ["max", x, *windows, "-o", out], "--jvp or --vjp"),
            (2, ["max", x, *windows, "-o", out, "--vjp", x, "--jvp", x], "one at a time"),
            (2, ["average", x, *windows, "--winners", out], "--winners belongs to max and min"),
            (2, ["max", x, *windows, "-o", out, "--vjp", x], "gy has size 4 on axis 0; expected 2"),
            (2, ["max", "-", *windows, "-o", out, "--vjp", "-"], "both the standard input"),
            (2, ["max", x, *windows, "--value", out, "--winners", out], "--value and --winners are both"),
            (1, ["max", x, *windows, "-o", out, "--vjp", self.path("f.npy")], "holds f32"),
            (1, ["max", HERE.parent.parent / "examples" / "data" / "coffee.png", *windows, "-o", out, "--vjp", x], "is a picture"),
            (1, ["max", self.path("i.npy"), *windows, "-o", out, "--vjp", x], "holds i32"),
        ]:
            with self.subTest(word=word):
                self.assertIn(word, self.refused(code, "grad", *arguments))
                self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main()
