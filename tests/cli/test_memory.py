"""Arrays of any size in bounded memory, with the same bits as in one piece."""
import subprocess
import unittest

import numpy as np

from support import CENOTE, Scratch


class SameBits(Scratch):
    def compare(self, x, *arguments, memory):
        """In one piece, in small parts where it lies, and in small parts as it comes out of a pipe."""
        whole = self.pool(x, *arguments)
        self.assert_bits(self.pool(x, *arguments, "--memory", memory), whole)
        operator, *rest = arguments
        with open(self.path("x.npy"), "rb") as file:
            pipe = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
            got = self.cenote("pool", operator, "-", "-o", self.path("z.npy"), *rest, "--memory", memory, stdin=pipe.stdout)
            pipe.stdout.close()
            pipe.wait()
        self.assertEqual(got, b"")
        self.assert_bits(np.load(self.path("z.npy")), whole)

    def assert_bits(self, got, expected):
        self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape))
        self.assertEqual(got.tobytes("K"), expected.tobytes("K"))

    def test_sliding_windows_that_overlap_leave_gaps_are_padded_and_overhang(self):
        x = self.random.normal(size=(23, 17, 9)).astype("f4")
        for operator in (["max"], ["average"], ["sum"], ["smooth-max", "--beta", "3"], ["lp", "--p", "3"]):
            for windows in (["-k", "3x3x3", "-s", "1"], ["-k", "2x3x2", "-s", "5x1x1"], ["-k", "3x3x2", "-s", "2", "-p", "1"],
                            ["-k", "4x2x2", "-s", "3", "--ceil"], ["-k", "3x2x2", "-d", "3x1x1", "-s", "2"],
                            ["-k", "5x1x1", "-s", "1", "-p", "0:4x0x0"]):
                with self.subTest(operator=operator, windows=windows):
                    self.compare(x, *operator, *windows, memory="12K")

    def test_windows_that_lie_in_padding_altogether(self):
        x = self.random.normal(size=(11, 30)).astype("f8")
        for operator in (["max"], ["average"], ["smooth-max", "--beta", "2"]):
            self.compare(x, *operator, "-k", "2x2", "-s", "1", "-p", "7x3", memory="4K")

    def test_adaptive_windows(self):
        x = self.random.normal(size=(24, 18, 5)).astype("f4")
        for operator in (["max"], ["average"], ["smooth-max", "--beta", "3"]):
            for output in ("6x5x5", "7x18x2", "9x4x1", "30x20x5"):
                with self.subTest(operator=operator, output=output):
                    self.compare(x, *operator, "--adaptive", output, memory="8K")
            self.assert_bits(self.pool(x, *operator, "--adaptive", "1x3x5", "--memory", "2K"), self.pool(x, *operator, "--adaptive", "1x3x5"))

    def test_large_windows(self):
        x = self.random.normal(size=(200, 70)).astype("f4")
        for operator in (["max"], ["average"], ["sum"], ["smooth-max", "--beta", "3"]):
            with self.subTest(operator=operator):
                self.compare(x, *operator, "-k", "64x9", "-s", "1", "-p", "20x4", memory="60K")
                self.compare(x, *operator, "-k", "33x17", "-s", "7x3", "--ceil", memory="40K")

    def test_batches_of_one_and_axes_in_the_middle(self):
        x = self.random.normal(size=(1, 1, 40, 30)).astype("f4")
        self.compare(x, "max", "-k", "2x2", memory="4K")
        x = self.random.normal(size=(3, 20, 30, 4)).astype("f4")
        self.compare(x, "average", "-k", "3x3", "-s", "2", "-a", "1,2", memory="12K")

    def test_fortran_order_and_the_other_byte_order(self):
        x = np.asfortranarray(self.random.normal(size=(20, 21, 22)).astype("f4"))
        self.compare(x, "average", "-k", "2x3x2", "-s", "1", memory="24K")
        self.compare(x.astype(">f4"), "average", "-k", "2x3x2", "-s", "1", memory="24K")

    def test_conversions(self):
        x = self.random.integers(0, 255, (40, 30), "u1")
        self.compare(x, "smooth-max", "-k", "3x3", "-s", "1", "--beta", "0.1", memory="4K")
        self.compare(x, "average", "-k", "3x3", "-s", "1", "--dtype", "f64", memory="4K")

    def test_random_geometries(self):
        for case in range(60):
            rank = int(self.random.integers(1, 4))
            sizes = self.random.integers(1, 14, rank)
            kernel = [int(self.random.integers(1, n + 1)) for n in sizes]
            join = "x".join
            arguments = ["-k", join(map(str, kernel)), "-s", join(str(self.random.integers(1, 5)) for _ in kernel),
                         "-p", join(f"{self.random.integers(0, 4)}:{self.random.integers(0, 4)}" for _ in kernel)]
            if self.random.integers(2):
                arguments.append("--ceil")
            x = self.random.normal(size=sizes).astype("f4")
            if self.random.integers(2):
                x = np.asfortranarray(x)
            operator = [["max"], ["average"], ["smooth-max", "--beta", "-2"]][case % 3]
            with self.subTest(case=case, sizes=sizes, arguments=arguments, operator=operator):
                whole = self.pool(x, *operator, *arguments)
                self.assert_bits(self.pool(x, *operator, *arguments, "--memory", "200"), whole)


class Bounds(Scratch):
    @unittest.skipIf("asan" in CENOTE, "the address sanitizer's own memory counts as ours")
    def test_a_large_array_is_pooled_in_less_memory_than_was_allowed(self):
        name = self.path("large.npy")
        np.lib.format.open_memmap(name, "w+", np.float32, (1024, 512, 512)).flush()  # 1 GB, all of it a hole
        used = self.peak_memory("pool", "max", name, "-o", self.path("y.npy"), "-k", "2x2x2", "--memory", "128M")
        self.assertLess(used, 128 << 20)
        self.assertEqual(np.load(self.path("y.npy"), mmap_mode="r").shape, (512, 256, 256))
        with open(name, "rb") as file:
            pipe = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
            used = self.peak_memory("pool", "max", "-", "-o", self.path("y.npy"), "-k", "2x2x2", "--memory", "128M", stdin=pipe.stdout)
            pipe.wait()
        self.assertLess(used, 128 << 20)

    @unittest.skipIf("asan" in CENOTE, "the address sanitizer's own memory counts as ours")
    def test_pages_of_the_file_count_where_windows_are_scattered_over_it_or_are_all_of_it(self):
        name = self.path("large.npy")
        np.lib.format.open_memmap(name, "w+", np.float32, (384, 512, 512)).flush()  # 384 MB
        for windows in (["--global", "-a", 0], ["-k", "300x2x2"], ["--global"]):
            used = self.peak_memory("pool", "max", name, "-o", self.path("y.npy"), *windows, "--memory", "128M")
            self.assertLess(used, 128 << 20, windows)

    def test_windows_that_do_not_fit_are_refused_with_the_numbers(self):
        np.save(self.path("x.npy"), np.zeros((64, 1000, 1000), ">f4"))
        line = self.refused(1, "pool", "max", self.path("x.npy"), "-o", self.path("y.npy"), "-k", "4x4x4", "--memory", "1M")
        for word in ("x.npy", "--memory", "MB"):
            self.assertIn(word, line)


if __name__ == "__main__":
    unittest.main()
