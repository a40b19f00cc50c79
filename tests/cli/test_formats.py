"""Every format into every format, every kind of file that a format has, compared with NumPy."""
import itertools
import struct
import unittest

import numpy as np

import pictures
from support import Scratch


def maxima(x, axes, size=2):
    """Max over size x size windows of two axes, or of more."""
    for axis in axes:
        whole = x.shape[axis] // size * size
        x = np.take(x, range(whole), axis)
        x = x.reshape(*x.shape[:axis], whole // size, size, *x.shape[axis + 1:]).max(axis + 1)
    return x


def write(path, pixels):
    if path.suffix == ".npy":
        np.save(path, pixels)
    else:
        path.write_bytes(pictures.png_bytes(pixels) if path.suffix == ".png" else pictures.tiff_bytes(pixels))


def read(path):
    if path.suffix == ".npy":
        return np.load(path)
    return (pictures.read_png if path.suffix == ".png" else pictures.read_tiff)(path.read_bytes())


class Threads(Scratch):
    def test_pictures_are_the_same_whether_codecs_have_threads_or_not(self):
        """Through blocks and parts that do not end where rows end."""
        pixels = self.random.integers(0, 65535, (301, 777, 3), "u2")
        for source, target, operator in itertools.product((".png", ".tif"), (".npy", ".png", ".tif"), (["max"], ["lp"])):
            with self.subTest(source=source, target=target, operator=operator):
                write(self.path("in" + source), pixels)
                outputs = []
                for name, *options in (["one", "--threads", "1"], ["two", "--threads", "2"], ["small", "--threads", "3", "--memory", "200K"]):
                    self.cenote("pool", *operator, self.path("in" + source), "-o", self.path(name + target), "-k", "3", "-s", "2", *options)
                    outputs.append(self.path(name + target).read_bytes())
                self.assertEqual(outputs[0], outputs[1])
                self.assertEqual(outputs[0], outputs[2])


class Pairs(Scratch):
    def test_every_format_into_every_format(self):
        for source, target, dtype, channels in itertools.product(
                (".npy", ".png", ".tif"), (".npy", ".png", ".tif"), ("u1", "u2"), ((), (2,), (3,), (4,))):
            with self.subTest(source=source, target=target, dtype=dtype, channels=channels):
                pixels = self.random.integers(0, np.iinfo(dtype).max, (7, 9, *channels), dtype, endpoint=True)
                write(self.path("in" + source), pixels)
                last = ["--channels-last"] if channels and source == ".npy" else []
                self.cenote("pool", "max", self.path("in" + source), "-o", self.path("out" + target), "-k", "2x2", *last)
                self.assert_same(read(self.path("out" + target)), maxima(pixels, (0, 1)))

    def test_the_format_follows_the_content_and_not_the_name(self):
        pixels = self.random.integers(0, 255, (6, 6), "u1")
        self.path("lies.npy").write_bytes(pictures.png_bytes(pixels))
        self.cenote("pool", "max", self.path("lies.npy"), "-o", self.path("out"), "--format", "tiff", "-k", 3)
        self.assert_same(pictures.read_tiff(self.path("out").read_bytes()), maxima(pixels, (0, 1), 3))

    def test_an_output_without_a_telling_name_has_the_format_of_the_input(self):
        pixels = self.random.integers(0, 255, (4, 4, 3), "u1")
        for ending, decode in ((".png", pictures.read_png), (".tif", pictures.read_tiff)):
            write(self.path("in" + ending), pixels)
            self.cenote("pool", "max", self.path("in" + ending), "-o", self.path("out"), "-k", 2)
            self.assert_same(decode(self.path("out").read_bytes()), maxima(pixels, (0, 1)))


class Npy(Scratch):
    def test_every_type_in_both_byte_orders_and_both_storage_orders(self):
        for code, order, storage in itertools.product(
                ("f8", "f4", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"), "<>", "CF"):
            with self.subTest(code=code, order=order, storage=storage):
                values = self.random.integers(0 if code[0] == "u" else -100, 100, (3, 6, 5))
                x = np.asarray(values.astype(order + code), order=storage)
                y = self.pool(x, "max", "-k", "2x2", "-a", "0,1")
                self.assert_same(y, maxima(values.astype(code), (0, 1)))
                self.assertEqual(y.flags.f_contiguous, storage == "F")

    def test_bfloat16_travels_as_raw_pairs(self):
        values = np.array([[1.5, -2.0], [0.25, 96.0]], np.float32)
        np.save(self.path("x.npy"), (values.view(np.uint32) >> 16).astype(np.uint16).view("V2"))
        self.assertIn("V2", self.refused(1, "pool", "max", self.path("x.npy"), "-o", self.path("y.npy"), "-k", "2x1"))
        self.cenote("pool", "max", self.path("x.npy"), "-o", self.path("y.npy"), "-k", "2x1", "--dtype", "bf16")
        y = np.load(self.path("y.npy"))
        self.assertEqual(y.dtype, np.dtype("V2"))
        bits = y.view(np.uint16).astype(np.uint32) << 16
        np.testing.assert_array_equal(bits.view(np.float32), [[1.5, 96.0]])

    def test_every_version_of_the_header(self):
        x = np.arange(6, dtype="f4").reshape(2, 3)
        for version in ((1, 0), (2, 0), (3, 0)):
            with open(self.path("x.npy"), "wb") as file:
                np.lib.format.write_array(file, x, version=version)
            self.cenote("pool", "sum", self.path("x.npy"), "-o", self.path("y.npy"), "--global", "--drop")
            self.assert_same(np.load(self.path("y.npy")), np.array(15, "f4"))

    def test_data_that_is_not_aligned(self):
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}"
        for extra in range(8):
            text = header + b" " * extra + b"\n"
            data = struct.pack("<3d", 1, 5, 3)
            self.path("x.npy").write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data)
            self.cenote("pool", "max", self.path("x.npy"), "-o", self.path("y.npy"), "-k", 3)
            self.assert_same(np.load(self.path("y.npy")), np.array([5.0]))

    def test_empty_axes_and_no_axes(self):
        self.assert_same(self.pool(np.zeros((0, 4), "f4"), "max", "-k", "2", "-a", "1"), np.zeros((0, 2), "f4"))
        np.save(self.path("x.npy"), np.float32(3))
        self.assertIn("axes", self.refused(2, "pool", "max", self.path("x.npy"), "-o", self.path("y.npy"), "-k", "2x2"))


class Png(Scratch):
    def test_interlaced(self):
        for shape, dtype in itertools.product(((9, 11), (5, 5, 3), (1, 1, 4)), ("u1", "u2")):
            pixels = self.random.integers(0, 255, shape, dtype)
            self.path("in.png").write_bytes(pictures.png_bytes(pixels, interlaced=True))
            self.cenote("pool", "max", self.path("in.png"), "-o", self.path("out.npy"), "-k", 1)
            self.assert_same(np.load(self.path("out.npy")), pixels)

    def test_palettes_few_bits_and_a_transparent_colour_are_widened(self):
        header = struct.pack(">IIBBBBB", 4, 1, 8, 3, 0, 0, 0)
        palette = bytes([10, 20, 30, 40, 50, 60])
        idat = pictures.zlib.compress(b"\0" + bytes([0, 1, 1, 0]))
        parts = [pictures.chunk(b"IHDR", header), pictures.chunk(b"PLTE", palette), pictures.chunk(b"tRNS", bytes([255, 7])),
                 pictures.chunk(b"IDAT", idat), pictures.chunk(b"IEND", b"")]
        self.path("in.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
        self.cenote("pool", "max", self.path("in.png"), "-o", self.path("out.npy"), "-k", "1x2")
        self.assert_same(np.load(self.path("out.npy")), np.array([[[40, 50, 60, 255]] * 2], "u1"))
        header = struct.pack(">IIBBBBB", 8, 1, 1, 0, 0, 0, 0)
        parts = [pictures.chunk(b"IHDR", header), pictures.chunk(b"IDAT", pictures.zlib.compress(b"\0\x0f")),
                 pictures.chunk(b"IEND", b"")]
        self.path("in.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))
        self.cenote("pool", "max", self.path("in.png"), "-o", self.path("out.npy"), "-k", "1x2")
        self.assert_same(np.load(self.path("out.npy")), np.array([[0, 0, 255, 255]], "u1"))

    def test_what_colours_mean_survives(self):
        pixels = self.random.integers(0, 255, (4, 4, 3), "u1")
        gamma = pictures.chunk(b"gAMA", struct.pack(">I", 45455))
        self.path("in.png").write_bytes(pictures.png_bytes(pixels, extra=gamma))
        self.cenote("pool", "average", self.path("in.png"), "-o", self.path("out.png"), "-k", 2)
        self.assertEqual(dict(pictures.png_chunks(self.path("out.png").read_bytes()))[b"gAMA"], struct.pack(">I", 45455))

    def test_what_png_cannot_hold_is_refused(self):
        np.save(self.path("x.npy"), np.zeros((4, 4), "f4"))
        line = self.refused(1, "pool", "max", self.path("x.npy"), "-o", self.path("y.png"), "-k", "2x2")
        self.assertIn("u8 and u16", line)
        self.assertIn("--dtype", line)
        np.save(self.path("x.npy"), np.zeros((4, 4, 4, 4, 4), "u1"))
        self.refused(1, "pool", "max", self.path("x.npy"), "-o", self.path("y.png"), "-k", "2x2")
        np.save(self.path("x.npy"), np.zeros((5, 4, 9), "u1"))
        self.assertIn("one picture", self.refused(1, "pool", "max", self.path("x.npy"), "-o", self.path("y.png"), "-k", "1x1"))


class Tiff(Scratch):
    def through(self, data, *arguments):
        self.path("in.tif").write_bytes(data)
        self.cenote("pool", "max", self.path("in.tif"), "-o", self.path("out.npy"), *arguments)
        return np.load(self.path("out.npy"))

    def test_every_type(self):
        for code in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"):
            with self.subTest(code=code):
                pixels = self.random.integers(0 if code[0] == "u" else -100, 100, (6, 8, 3)).astype(code)
                self.path("in.tif").write_bytes(pictures.tiff_bytes(pixels))
                self.cenote("pool", "max", self.path("in.tif"), "-o", self.path("out.tif"), "-k", 2)
                self.assert_same(pictures.read_tiff(self.path("out.tif").read_bytes()), maxima(pixels, (0, 1)))

    def test_every_layout(self):
        pixels = self.random.integers(0, 60000, (37, 21, 3), "u2")
        layouts = [dict(), dict(order=">"), dict(strip_rows=5), dict(tile=16), dict(apart=True, strip_rows=4), dict(apart=True, tile=16),
                   dict(deflate=True, strip_rows=3), dict(deflate=True, tile=16, order=">"), dict(big=True), dict(big=True, order=">", tile=16)]
        for layout in layouts:
            with self.subTest(**layout):
                self.assert_same(self.through(pictures.tiff_bytes(pixels, **layout), "-k", 3), maxima(pixels, (0, 1), 3))

    def test_pages_are_a_volume(self):
        volume = self.random.integers(0, 255, (5, 6, 7), "u1")
        data = pictures.tiff_bytes(list(volume))
        self.assert_same(self.through(data, "-k", 2), maxima(volume, (0, 1, 2)))
        self.assert_same(self.through(data, "-k", "2x2"), maxima(volume, (1, 2)))
        self.cenote("pool", "max", self.path("in.tif"), "-o", self.path("out.tif"), "-k", "2x1x1")
        self.assert_same(pictures.read_tiff(self.path("out.tif").read_bytes()), maxima(volume, (0,)))

    def test_pages_of_different_shapes_are_refused(self):
        self.path("in.tif").write_bytes(pictures.tiff_bytes([np.zeros((4, 4), "u1"), np.zeros((4, 5), "u1")]))
        line = self.refused(1, "pool", "max", self.path("in.tif"), "-o", self.path("out.npy"), "-k", 2)
        self.assertIn("page 2 is 4x5", line)

    def test_white_as_zero_is_turned_round(self):
        pixels = self.random.integers(0, 255, (4, 4), "u1")
        self.assert_same(self.through(pictures.tiff_bytes(pixels, white_is_0=True), "-k", 2), maxima(255 - pixels, (0, 1)))

    def test_orientation_survives(self):
        self.path("in.tif").write_bytes(pictures.tiff_bytes(np.zeros((4, 4), "u1"), extra=[(274, 3, [6])]))
        self.cenote("pool", "max", self.path("in.tif"), "-o", self.path("out.tif"), "-k", 2)
        (_, tags), = pictures.tiff_pages(self.path("out.tif").read_bytes())
        self.assertEqual(tags[274], (6,))

    def test_what_pixels_mean_must_be_plain(self):
        for tag, value, word in ((262, 8, "L*a*b*"), (259, 7, "compression 7"),
                                 (258, 3, "3 bits"), (258, 0, ""), (258, 12, "12 bits")):
            data = bytearray(pictures.tiff_bytes(np.zeros((4, 4), "u1")))
            at = data.index(struct.pack("<HHI", tag, 3, 1))
            data[at + 8:at + 10] = struct.pack("<H", value)
            self.path("in.tif").write_bytes(data)
            self.assertIn(word, self.refused(1, "pool", "max", self.path("in.tif"), "-o", self.path("o.npy"), "-k", 2))


    def changed(self, data, **tags):
        """A TIFF with other values in tags of one short number."""
        data = bytearray(data)
        for tag, value in tags.items():
            at = data.index(struct.pack("<HHI", int(tag[1:]), 3, 1))
            data[at + 8:at + 10] = struct.pack("<H", value)
        return bytes(data)

    def test_palettes_become_colours(self):
        for wide in (257, 1):  # the standard's 16 bits, and the 8 that some programs wrote
            colours = self.random.integers(0, 256, (256, 3), "u2")
            numbers = self.random.integers(0, 256, (21, 37), "u1")
            extra = [(320, 3, [int(c) for c in colours.T.ravel() * wide])]
            for layout in (dict(), dict(tile=16), dict(strip_rows=4)):
                data = self.changed(pictures.tiff_bytes(numbers, extra=extra, **layout), t262=3)
                self.assert_same(self.through(data, "-k", 2), maxima(colours[numbers].astype("u1"), (0, 1)))

    def test_fewer_than_8_bits_are_widened(self):
        for bits in (1, 2, 4):
            numbers = self.random.integers(0, 1 << bits, (21, 37), "u1")
            for tile in (None, 16):
                padded = np.zeros((32, 48) if tile else (21, -(-37 * bits // 8) * 8 // bits), "u1")
                padded[:21, :37] = numbers
                packed = np.packbits(np.unpackbits(padded[..., None], axis=-1)[..., -bits:].reshape(len(padded), -1), axis=1)
                if tile:  # pictures.tiff_bytes cuts bytes into tiles; the tags then speak of pixels
                    wide = 16 * bits // 8
                    pieces = [packed[r:r + 16, c:c + wide] for r in (0, 16) for c in range(0, 3 * wide, wide)]
                    data = pictures.tiff_bytes(np.zeros((21, 37), "u1"), tile=16)
                    (_, tags), = pictures.tiff_pages(data)
                    data = bytearray(data)
                    for place, piece in zip(tags[324], pieces):
                        data[place:place + piece.size] = piece.tobytes()
                else:
                    data = bytearray(pictures.tiff_bytes(packed))
                    at = data.index(struct.pack("<HHII", 256, 4, 1, packed.shape[1]))
                    data[at + 8:at + 12] = struct.pack("<I", 37)
                got = self.through(self.changed(data, t258=bits), "-k", 1)
                self.assert_same(got, (numbers * (255 // ((1 << bits) - 1))).astype("u1"))

    def test_cmyk_stays_cmyk_and_is_no_png(self):
        inks = self.random.integers(0, 255, (4, 6, 4), "u1")
        data = self.changed(pictures.tiff_bytes(inks), t262=5)
        self.assert_same(self.through(data, "-k", 2), maxima(inks, (0, 1)))
        self.cenote("pool", "max", self.path("in.tif"), "-o", self.path("out.tif"), "-k", 2)
        (_, tags), = pictures.tiff_pages(self.path("out.tif").read_bytes())
        self.assertEqual(tags[262], (5,))
        self.assertNotIn(338, tags)
        self.assertIn("CMYK", self.refused(1, "pool", "max", self.path("in.tif"), "-o", self.path("out.png"), "-k", 2))


class Types(Scratch):
    def test_a_wider_result_is_computed_wide(self):
        x = self.random.integers(0, 256, (6, 8), "u1")
        blocks = x.reshape(3, 2, 4, 2)
        self.assert_same(self.pool(x, "sum", "-k", "2x2", "--dtype", "u16"), blocks.sum((1, 3), dtype="u2"))
        self.assert_same(self.pool(x, "average", "-k", "2x2", "--dtype", "f32"), blocks.mean((1, 3), dtype="f4"))
        self.assert_same(self.pool(x, "sum", "-k", "2x2", "--dtype", "i8"), np.full((3, 4), 127, "i1"))  # which holds no u8
        small = np.array([1, 2**-30], "f4")
        self.assert_same(self.pool(small, "sum", "-k", 2, "--dtype", "f64"), small.sum(dtype="f8", keepdims=True))

    def test_truth_values_stay_so_under_max_and_min_and_are_numbers_if_that_is_asked(self):
        x = self.random.random((6, 8)) < 0.3
        blocks = x.reshape(3, 2, 4, 2)
        self.assert_same(self.pool(x, "max", "-k", "2x2"), blocks.any((1, 3)))
        self.assert_same(self.pool(x, "min", "-k", "2x2"), blocks.all((1, 3)))
        self.assert_same(self.pool(x, "sum", "-k", "2x2", "--dtype", "u8"), blocks.sum((1, 3), dtype="u1"))
        self.assert_same(self.pool(x, "average", "-k", "2x2", "--dtype", "f32"), blocks.mean((1, 3), dtype="f4"))
        line = self.refused(1, "pool", "sum", self.path("x.npy"), "-o", self.path("y.npy"), "-k", "2x2")
        self.assertIn("--dtype", line)

    def test_a_smooth_maximum_of_a_picture_is_a_picture(self):
        pixels = self.random.integers(0, 255, (6, 6), "u1")
        write(self.path("in.png"), pixels)
        self.cenote("pool", "smooth-max", self.path("in.png"), "-o", self.path("out.png"), "-k", 3, "--beta", "0.1")
        blocks = pixels.reshape(2, 3, 2, 3).astype(float)
        exact = np.log(np.exp(0.1 * blocks).sum((1, 3))) / 0.1
        got = read(self.path("out.png"))
        self.assertEqual(got.dtype, np.uint8)
        np.testing.assert_allclose(got, np.clip(exact, 0, 255), atol=0.51)
        self.cenote("pool", "smooth-max", self.path("in.png"), "-o", self.path("out.npy"), "-k", 3, "--beta", "0.1")
        got = np.load(self.path("out.npy"))
        self.assertEqual(got.dtype, np.float32)
        np.testing.assert_allclose(got, exact, rtol=1e-6)

    def test_channels_that_are_computed_in_another_type_do_not_mix(self):
        windows = ["-k", "3x2", "-s", "2x1", "-p", "1x0:1", "--p", "3"]
        for channels, dtype, memory in ((2, "u1", "4M"), (3, "u1", "1M"), (3, "u2", "4M"), (4, "u1", "4M"), (5, "u1", "1M")):
            pixels = self.random.integers(0, 90, (400, 301, channels), dtype)
            planes = [self.pool(pixels[..., c].astype("f4"), "lp", *windows) for c in range(channels)]
            expected = np.stack(planes, -1)
            np.save(self.path("in.npy"), pixels)
            name = "in.npy"
            if channels < 5:
                name = "in.png"
                write(self.path(name), pixels)
            more = ["--channels-last", "--memory", memory]
            self.cenote("pool", "lp", self.path(name), "-o", self.path("out.npy"), *windows, *more)
            self.assert_same(np.load(self.path("out.npy")), expected)
            if channels < 5:
                self.cenote("pool", "lp", self.path(name), "-o", self.path("out.png"), *windows, *more)
                self.assert_same(read(self.path("out.png")), np.rint(expected).clip(0, np.iinfo(dtype).max).astype(dtype))

    def test_results_are_rounded_half_to_even_and_clamped(self):
        x = np.array([0.5, 1.5, 2.5, -1.0, 255.5, 1e9, np.nan, np.inf], "f4")
        self.assert_same(self.pool(x, "max", "-k", 1, "--dtype", "u8"), np.array([0, 2, 2, 0, 255, 255, 0, 255], "u1"))
        self.assert_same(self.pool(np.array([-1, 2**63 - 1], "i8"), "max", "-k", 1, "--dtype", "u64"), np.array([0, 2**63 - 1], "u8"))
        self.assert_same(self.pool(np.array([1e300, -1e300]), "max", "-k", 1, "--dtype", "i64"), np.array([2**63 - 1, -2**63], "i8"))

    def test_a_type_that_is_none_is_refused(self):
        line = self.refused(2, "pool", "max", "x.npy", "-o", "y.npy", "-k", 1, "--dtype", "f8")
        self.assertIn("'f8'", line)
        self.assertIn("f64", line)


if __name__ == "__main__":
    unittest.main()
