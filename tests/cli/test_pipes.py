"""Pipes in and out, and what a terminal sees."""
import io
import os
import subprocess
import time
import unittest

import numpy as np

import pictures
from support import CENOTE, Scratch, on_terminal


class Pipes(Scratch):
    def test_commands_in_a_row(self):
        x = self.random.normal(size=(8, 12)).astype("f4")
        np.save(self.path("x.npy"), x)
        first = subprocess.Popen([CENOTE, "pool", "max", self.path("x.npy"), "-o", "-", "-k", "2x2"], stdout=subprocess.PIPE)
        out = self.cenote("pool", "min", "-", "-o", "-", "-k", "2x3", stdin=first.stdout)
        first.stdout.close()
        self.assertEqual(first.wait(), 0)
        expected = x.reshape(4, 2, 6, 2).max((1, 3)).reshape(2, 2, 2, 3).min((1, 3))
        self.assert_same(np.load(io.BytesIO(out)), expected)

    def test_redirected_files(self):
        x = self.random.normal(size=(6, 6))
        np.save(self.path("x.npy"), x)
        with open(self.path("x.npy"), "rb") as source, open(self.path("y.npy"), "wb") as target:
            done = subprocess.run([CENOTE, "pool", "max", "-", "-o", "-", "-k", "3x3"], stdin=source, stdout=target)
        self.assertEqual(done.returncode, 0)
        self.assert_same(np.load(self.path("y.npy")), x.reshape(2, 3, 2, 3).max((1, 3)))

    def test_a_png_may_come_and_go_by_pipes_and_a_tiff_may_not(self):
        pixels = self.random.integers(0, 255, (4, 6, 3), "u1")
        out = self.cenote("pool", "max", "-", "-o", "-", "--format", "png", "-k", 2, stdin=None, input=pictures.png_bytes(pixels))
        self.assert_same(pictures.read_png(out), pixels.reshape(2, 2, 3, 2, 3).max((1, 3)))
        tiff = pictures.tiff_bytes(pixels)
        line = self.refused(1, "pool", "max", "-", "-o", "-", "-k", 2, stdin=None, input=tiff)
        self.assertIn("standard input: TIFF", line)
        self.path("x.tif").write_bytes(tiff)
        self.assertIn("standard output: TIFF", self.refused(1, "pool", "max", self.path("x.tif"), "-o", "-", "--format", "tiff", "-k", 2))

    def test_devices_are_written_as_they_are(self):
        np.save(self.path("x.npy"), np.zeros((4, 4)))
        self.cenote("pool", "max", self.path("x.npy"), "-o", "/dev/null", "-k", "2x2")
        self.assertTrue(os.path.exists("/dev/null"))


class Terminal(Scratch):
    def slow(self, stdin):
        buffer = io.BytesIO()
        np.save(buffer, np.zeros((400, 1000), "f4"))
        data = buffer.getvalue()
        for at in range(0, len(data), len(data) // 8):
            stdin.write(data[at:at + len(data) // 8])
            stdin.flush()
            time.sleep(0.1)

    def test_a_long_task_shows_a_bar_and_wipes_it(self):
        arguments = ["pool", "max", "-", "-o", self.path("y.npy"), "-k", "2x2", "--memory", "64K"]
        seen = on_terminal(*arguments, feed=self.slow)
        self.assertRegex(seen, rb"\[#*\.*\] +\d+ %  [\d.]+ GB/s  \d+ s left")
        self.assertTrue(seen.endswith(b"\r\x1b[K"), seen)
        self.assertEqual(on_terminal(*arguments, "--quiet", feed=self.slow), b"")

    def test_the_bar_fits_a_narrow_terminal(self):
        for columns in (60, 30, 16):
            seen = on_terminal("pool", "max", "-", "-o", self.path("y.npy"), "-k", "2x2", "--memory", "64K", feed=self.slow, columns=columns)
            lines = [line for line in seen.split(b"\r\x1b[K") if line]
            self.assertGreater(len(lines), 0)
            self.assertLess(max(map(len, lines)), columns)
            self.assertEqual(b"#" in seen, columns == 60)

    def test_no_array_is_written_to_a_terminal(self):
        np.save(self.path("x.npy"), np.zeros((4, 4)))
        seen = on_terminal("pool", "max", self.path("x.npy"), "-o", "-", "-k", "2x2")
        self.assertRegex(seen, rb"^cenote: standard output: is a terminal[^\n]*\n$")

    def test_colour_on_terminals_only_and_never_with_no_color(self):
        arguments = ["explain", "max", "--shape", "4x4", "-k", "2x2"]
        self.assertIn(b"\x1b[", on_terminal(*arguments, NO_COLOR=""))
        self.assertNotIn(b"\x1b[", on_terminal(*arguments, NO_COLOR="1"))
        self.assertNotIn(b"\x1b[", on_terminal(*arguments, "--colour", "never", NO_COLOR=""))
        self.assertNotIn(b"\x1b[", self.cenote(*arguments))
        self.assertIn(b"\x1b[", self.cenote(*arguments, "--color", "always"))


if __name__ == "__main__":
    unittest.main()
