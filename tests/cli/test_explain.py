"""`cenote explain`: pictures compared with those in snapshots/, which people have looked at.

CENOTE_ACCEPT=1 writes them again; look at every difference before committing it."""
import os
import re
import struct
import subprocess
import unittest
import xml.etree.ElementTree

import numpy as np

from support import HERE, Scratch, on_terminal

GRID = np.array([[8, 0, 1, 2, 1, 8], [8, 5, 0, 0, 3, 4], [6, 4, 2, 1, 6, 7], [0, 1, 4, 3, 8, 5], [4, 4, 6, 5, 1, 7]], "f4")
VOLUME = (np.arange(60).reshape(3, 4, 5) * 37 % 61).astype("i2")
SMOOTH = ["smooth-max", "grid.npy", "-k", "3x3", "-s", "2", "-p", "1", "--beta", "0.7", "--at", "0x2"]

PICTURES = {
    "window.txt": ["max", "--shape", "7x7", "-k", "3x3", "-s", "2", "-p", "1", "--at", "0x0"],
    "winner.txt": ["max", "grid.npy", "-k", "3x3", "-s", "2", "-p", "1", "--at", "1x1"],
    "winner_in_colour.txt": ["max", "grid.npy", "-k", "3x3", "-s", "2", "-p", "1", "--at", "1x1", "--colour", "always"],
    "weights.txt": SMOOTH,
    "weights.svg": [*SMOOTH, "--svg", "out.svg"],
    "overhang.txt": ["average", "--shape", "6", "-k", "3", "-s", "2", "--ceil", "--at", "2"],
    "overhang.svg": ["max", "grid.npy", "-k", "3x4", "-s", "3", "--ceil", "--at", "1x1", "--svg", "out.svg"],
    "dilation.txt": ["min", "grid.npy", "-k", "2x3", "-d", "3x2", "--at", "0x0"],
    "ties_split.txt": ["max", "ones.npy", "-k", "2x2", "--ties", "split"],
    "planes.txt": ["max", "volume.npy", "-k", "2x2x2"],
    "planes.svg": ["max", "volume.npy", "-k", "2x2x2", "--svg", "out.svg"],
    "adaptive.txt": ["average", "--shape", "3x7", "--adaptive", "3", "-a", "1", "--at", "1"],
    "large.txt": ["average", "--shape", "2000x3000x3", "-k", "5", "-s", "3", "--channels-last", "--at", "0x500"],
    "global.txt": ["lp", "grid.npy", "--global", "--drop"],
}


class Explain(Scratch):
    maxDiff = None

    def test_pictures(self):
        np.save(self.path("grid.npy"), GRID)
        np.save(self.path("ones.npy"), np.ones((2, 2)))
        np.save(self.path("volume.npy"), VOLUME)
        for name, arguments in PICTURES.items():
            with self.subTest(name=name):
                out = self.cenote("explain", *arguments, cwd=self.folder)
                if name.endswith(".svg"):
                    self.assertEqual(out, b"")
                    out = self.path("out.svg").read_bytes()
                    xml.etree.ElementTree.fromstring(out)
                if os.environ.get("CENOTE_ACCEPT"):
                    (HERE / "snapshots" / name).write_bytes(out)
                self.assertEqual(out.decode(), (HERE / "snapshots" / name).read_text())

    def test_every_snapshot_is_compared(self):
        self.assertEqual({path.name for path in (HERE / "snapshots").iterdir()}, set(PICTURES))

    def test_the_formula_gives_the_size_that_pool_gives(self):
        np.save(self.path("x.npy"), np.zeros((9, 11)))
        for arguments in (["-k", "3x2"], ["-k", "2x2", "-s", "3", "--ceil"], ["-k", "3x3", "-s", "2", "-p", "1:2x0", "-d", "2x1"],
                          ["-k", "1x1", "-s", "3x4", "-p", "3", "--ceil"]):
            lines = self.cenote("explain", "max", self.path("x.npy"), *arguments).decode().splitlines()
            sizes = tuple(int(line.split()[-1]) for line in lines if line.startswith("axis"))
            self.assertEqual(sizes, self.pool(np.zeros((9, 11)), "max", *arguments).shape)

    def test_pictures_fit_a_narrow_terminal(self):
        np.save(self.path("x.npy"), self.random.normal(size=(40, 40)))
        for arguments in (["max", self.path("x.npy"), "-k", "5x5"], ["average", "--shape", "1000x1000", "--adaptive", "7x7"]):
            for columns in (120, 80, 40):
                out = on_terminal("explain", *arguments, columns=columns)
                lines = re.sub(rb"\x1b\[[0-9;]*m", b"", out).replace(b"\r", b"").decode().splitlines()
                rows = [line for line in lines if line.startswith(" ")]
                self.assertLessEqual(max(map(len, rows)), columns)
                self.assertGreater(max(map(len, rows)), columns // 2 if columns < 120 else 60)

    def test_what_is_too_large_is_refused_before_it_is_read(self):
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (51200, 51200)}"
        self.path("x").write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header)
        with subprocess.Popen(["cat", self.path("x")], stdout=subprocess.PIPE) as pipe:
            line = self.refused(1, "explain", "max", "-", "-k", "2x2", stdin=pipe.stdout)
        self.assertIn("standard input: has 2621440000 elements; at most 4194304 are legal here", line)

    def test_mistakes(self):
        for arguments, word in ((["max", "-k", "2x2"], "--shape"), (["max", "--shape", "4x4", "-k", "2x2", "--at", "5x0"], "--at is '5x0', and outputs are 2x2; on axis 0, 0 to 1 are legal"),
                                (["max", "--shape", "4x4", "-k", "2x2", "--at", "0x0x0"], "--at is '0x0x0'"),
                                (["max", "--shape", "4x4", "-k", "9x9"], "kernel spans 9"),
                                (["max", "--shape", "4x4", "-k", "2x2", "--colour", "pink"], "'pink'")):
            self.assertIn(word, self.refused(2, "explain", *arguments))


if __name__ == "__main__":
    unittest.main()
