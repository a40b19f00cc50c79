"""Files appear whole or not at all; hostile files give an error and take no memory to speak of."""
import os
import pathlib
import resource
import signal
import struct
import subprocess
import time
import unittest

import numpy as np

import pictures
from support import CENOTE, HERE, Scratch, run

CORPUS = HERE.parent / "fuzz" / "corpus"


class Whole(Scratch):
    def slow_pool(self, **options):
        """A pooling that waits for its input, in the middle of its work: (process, its pipe)."""
        process = subprocess.Popen([CENOTE, "pool", "max", "-", "-o", str(self.path("y.npy")), "-k", "2x2", "--memory", "64K"],
                                   stdin=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (4000, 1000)}\n"
        process.stdin.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + bytes(4_000_000))
        process.stdin.flush()
        while b"State:\tS" not in pathlib.Path(f"/proc/{process.pid}/status").read_bytes():  # it has read all there is
            time.sleep(0.01)
        return process

    def end(self, process):
        process.stdin.close()
        process.stderr.close()
        process.wait()

    def test_nothing_is_left_after_each_way_to_end(self):
        for number in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number):
                process = self.slow_pool()
                process.send_signal(number)
                self.assertEqual(process.wait(), -number)
                self.end(process)
                self.assertEqual(os.listdir(self.folder), [])

    def test_an_output_that_was_there_stays_until_the_new_one_is_whole(self):
        self.path("y.npy").write_bytes(b"old")
        process = self.slow_pool()
        self.assertEqual(self.path("y.npy").read_bytes(), b"old")
        process.kill()
        self.end(process)
        self.assertEqual(self.path("y.npy").read_bytes(), b"old")
        self.assertEqual(os.listdir(self.folder), ["y.npy"])
        self.pool(np.ones((2, 2), "f4"), "max", "-k", "2x2")
        self.assertEqual(np.load(self.path("y.npy")), 1)

    def test_an_input_that_ends_early_leaves_nothing(self):
        process = self.slow_pool()
        _, errors = process.communicate()
        self.assertEqual(process.returncode, 1)
        self.assertIn(b"standard input: ends with", errors)
        self.assertEqual(os.listdir(self.folder), [])

    def test_killed_at_any_moment_there_is_nothing_or_all_of_it(self):
        x = self.random.normal(size=(300, 400))
        np.save(self.path("x.npy"), x)
        for step in range(25):
            with self.subTest(milliseconds=2 * step):
                process = subprocess.Popen([CENOTE, "pool", "max", str(self.path("x.npy")), "-o", str(self.path("y.npy")), "-k", "1x1"])
                time.sleep(0.002 * step)
                process.kill()
                process.wait()
                if self.path("y.npy").exists():
                    self.assert_same(np.load(self.path("y.npy")), x)
                    self.path("y.npy").unlink()
                self.assertEqual(os.listdir(self.folder), ["x.npy"])

    def test_nothing_is_left_of_a_picture_either(self):
        """Codecs work on threads of their own, which end with the rest."""
        png = pictures.png_bytes(self.random.integers(0, 255, (900, 900, 3), "u1"))
        for number in (signal.SIGKILL, signal.SIGINT, None):
            process = subprocess.Popen([CENOTE, "pool", "max", "-", "-o", str(self.path("y.png")), "-k", "2", "--threads", "2"],
                                       stdin=subprocess.PIPE, stderr=subprocess.PIPE)
            process.stdin.write(png[:len(png) // 2])
            process.stdin.flush()
            time.sleep(0.2)
            if number is None:
                _, errors = process.communicate()
                self.assertEqual((process.returncode, errors.count(b"\n")), (1, 1))
                self.assertIn(b"standard input: PNG: the file ends too early", errors)
            else:
                process.send_signal(number)
                self.assertEqual(process.wait(), -number)
                self.end(process)
            self.assertEqual(os.listdir(self.folder), [])

    def test_a_full_disk(self):
        disk = self.path("disk")
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], stderr=subprocess.PIPE)
        if mounted.returncode != 0:
            self.skipTest(f"no tmpfs can be mounted here: {mounted.stderr.decode().strip()}")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        np.save(self.path("x.npy"), self.random.integers(0, 65535, (1500, 1500), "u2"))  # which no codec makes smaller
        (disk / "y").write_bytes(b"old")
        for arguments in (["--format", "npy"], ["--format", "tiff"], ["--format", "png"]):
            line = self.refused(1, "pool", "max", self.path("x.npy"), "-o", disk / "y", "-k", "1x1", *arguments)
            self.assertIn(f"{disk}/y", line)
            self.assertIn("No space left", line)
            self.assertEqual(os.listdir(disk), ["y"])
            self.assertEqual((disk / "y").read_bytes(), b"old")

    def test_a_limit_on_file_sizes(self):
        x = self.random.integers(0, 255, (600, 600), "u1")
        np.save(self.path("x.npy"), x)
        for name in ("y.npy", "y.png", "y.tif"):
            limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
            line = self.refused(1, "pool", "max", self.path("x.npy"), "-o", self.path(name), "-k", "1x1", preexec_fn=limit)
            self.assertIn("File too large", line)
            self.assertEqual(os.listdir(self.folder), ["x.npy"])

    def test_an_output_may_replace_its_input(self):
        np.save(self.path("x.npy"), np.arange(4.0))
        self.cenote("pool", "max", self.path("x.npy"), "-o", self.path("x.npy"), "-k", 2)
        self.assert_same(np.load(self.path("x.npy")), np.array([1.0, 3.0]))

    def test_links_and_permissions_stay(self):
        np.save(self.path("x.npy"), np.arange(4.0))
        self.path("real.npy").write_bytes(b"old")
        self.path("real.npy").chmod(0o640)
        self.path("link.npy").symlink_to("real.npy")
        self.cenote("pool", "max", self.path("x.npy"), "-o", self.path("link.npy"), "-k", 2)
        self.assertTrue(self.path("link.npy").is_symlink())
        self.assert_same(np.load(self.path("real.npy")), np.array([1.0, 3.0]))
        self.assertEqual(self.path("real.npy").stat().st_mode & 0o777, 0o640)

    def test_folders_and_places_that_are_not_there_are_refused(self):
        np.save(self.path("x.npy"), np.arange(4.0))
        for output in (self.folder, self.path("nowhere") / "y.npy", self.path("y.jpg")):
            self.assertIn(str(output), self.refused(1, "pool", "max", self.path("x.npy"), "-o", output, "-k", 2))
        self.assertIn("no name", self.refused(1, "pool", "max", self.path("x.npy"), "-o", "", "-k", 2))
        self.assertIn("no name", self.refused(1, "pool", "max", "", "-o", self.path("y.npy"), "-k", 2))
        self.assertIn("is a folder", self.refused(1, "pool", "max", self.folder, "-o", self.path("y.npy"), "-k", 2))


class Hostile(Scratch):
    def refuse(self, name, data, *words):
        self.path(name).write_bytes(data)
        limit = None
        if "asan" not in CENOTE:  # which reserves terabytes
            limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        line = self.refused(1, "pool", "max", self.path(name), "-o", self.path("y.npy"), "-k", "1x1", preexec_fn=limit)
        self.assertIn(name, line)
        for word in words:
            self.assertIn(word, line)
        self.assertFalse(self.path("y.npy").exists())

    def npy(self, text, data=b"", version=b"\1\0", length=None):
        text = text.encode()
        return b"\x93NUMPY" + version + struct.pack("<H", len(text) if length is None else length) + text + data

    def test_npy_headers(self):
        whole = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}\n"
        said = "{'descr': '%s', 'fortran_order': False, 'shape': %s}\n"
        for data, *words in [
            (b"", "empty"),
            (b"hello, world", "no format"),
            (b"\x93NUMPY", "header"),
            (self.npy(whole, length=60000), "ends inside"),
            (self.npy(whole, version=b"\2\0\0\0"), "header"),
            (self.npy(whole, version=b"\x09\0"), "version 9.0"),
            (self.npy(whole, b"\0" * 15), "announces 16 bytes", "has 15"),
            (self.npy(said % ("<f4", "(2684354560,)")), "announces 10737418240 bytes"),
            (self.npy(said % ("<f4", "(4611686018427387904, 4)")), "64 bits"),
            (self.npy(said % ("<f4", "(9223372036854775807,)")), "64 bits"),
            (self.npy(said % ("<f4", "(99999999999999999999,)")), "64 bits"),
            (self.npy(said % ("<f4", "(-2, 2)")), "-2"),
            (self.npy(said % ("<f4", "(" + "1," * 17 + ")")), "16 axes"),
            (self.npy(said % ("<f4", "(2, 'a')")), "no number"),
            (self.npy(said % ("|O", "(2,)")), "Python objects"),
            (self.npy(said % ("<c8", "(2,)")), "'<c8'"),
            (self.npy(said % ("<f16", "(2,)")), "'<f16'"),
            (self.npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}"), "list of fields"),
            (self.npy("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}"), "fortran_order"),
            (self.npy("{'descr': '<f4', 'shape': (2,)}"), "needs descr"),
            (self.npy("{'colour': 'red'}"), "'colour'"),
            (self.npy(whole + "__import__('os')", b"\0" * 16), "after its end"),
            (self.npy("{" * 1000), "quoted text"),
        ]:
            with self.subTest(words=words):
                self.refuse("bad.npy", data, *words)

    def test_pngs(self):
        good = pictures.png_bytes(self.random.integers(0, 255, (20, 20, 3), "u1"))
        for cut in (8, 20, 40, len(good) // 2, len(good) - 12, len(good) - 1):
            self.refuse("cut.png", good[:cut])
        broken = bytearray(good)
        broken[len(good) // 2] ^= 255
        self.refuse("broken.png", bytes(broken))
        header = lambda width, height, interlaced: b"\x89PNG\r\n\x1a\n" + pictures.chunk(
            b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 6, 0, 0, interlaced)) + pictures.chunk(
            b"IDAT", pictures.zlib.compress(bytes(100))) + pictures.chunk(b"IEND", b"")
        self.refuse("wide.png", header(2**31 - 1, 1, 0), "row", "64.0 GB", "--memory")
        self.refuse("high.png", header(1, 2**31 - 1, 0))
        self.refuse("interlaced.png", header(100000, 100000, 1), "interlaced", "--memory")
        self.refuse("zero.png", header(0, 5, 0))

    def test_tiffs(self):
        good = pictures.tiff_bytes(self.random.integers(0, 255, (20, 20, 3), "u1"), strip_rows=4)
        for cut in (4, 8, 100, len(good) // 2):
            self.refuse("cut.tif", good[:cut])
        for tag, value in ((256, 2**31), (257, 0), (256, 0)):
            bad = bytearray(good)
            at = bad.index(struct.pack("<HHI", tag, 4, 1))
            bad[at + 8:at + 12] = struct.pack("<I", value)
            self.refuse("bad.tif", bytes(bad))
        tiles = bytearray(pictures.tiff_bytes(np.zeros((20, 20), "u1"), tile=16))
        for tag in (322, 323):
            at = tiles.index(struct.pack("<HHI", tag, 3, 1))
            tiles[at + 2:at + 12] = struct.pack("<HII", 4, 1, 2**30)
        self.refuse("tiles.tif", bytes(tiles))
        loop = bytearray(pictures.tiff_bytes([np.zeros((2, 2), "u1")] * 2))
        loop[-4:] = loop[4:8]  # the second page is followed by the first
        self.path("loop.tif").write_bytes(loop)
        self.assertIn(run("pool", "max", self.path("loop.tif"), "-o", self.path("y.npy"), "-k", 1).returncode, (0, 1))

    def test_a_bomb_is_pooled_in_bounded_memory(self):
        """One gigabyte of zeros in one megabyte of file: read row by row, nothing is held."""
        row = bytes(1 + 32768)
        compressor = pictures.zlib.compressobj(9)
        data = b"".join(compressor.compress(row) for _ in range(4096)) + compressor.flush()
        header = struct.pack(">IIBBBBB", 32768, 4096, 8, 0, 0, 0, 0)
        self.path("bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + pictures.chunk(b"IHDR", header) +
                                          pictures.chunk(b"IDAT", data) + pictures.chunk(b"IEND", b""))
        limit = None if "asan" in CENOTE else lambda: resource.setrlimit(resource.RLIMIT_DATA, (100 << 20, 100 << 20))
        self.cenote("pool", "max", self.path("bomb.png"), "-o", self.path("y.npy"), "-k", 64, "--memory", "16M", preexec_fn=limit)
        self.assert_same(np.load(self.path("y.npy")), np.zeros((64, 512), "u1"))

    def test_the_fuzzers_corpus_gives_files_or_one_line(self):
        files = [path for name in ("npy", "png", "tiff") for path in sorted((CORPUS / name).iterdir())][::11]
        self.assertGreater(len(files), 8)
        for path in files:
            done = run("pool", "max", path, "-o", self.path("y.npy"), "--global")
            self.assertIn(done.returncode, (0, 1, 2), path)
            self.assertEqual(done.stderr.count(b"\n"), 0 if done.returncode == 0 else 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
