"""PNG and TIFF in Python, independent of the libraries that the tool uses: enough to make inputs and to read outputs."""
import struct
import zlib

import numpy as np

CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_bytes(pixels, interlaced=False, extra=b""):
    pixels = np.asarray(pixels)
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    bits = 8 * pixels.dtype.itemsize
    big = pixels.astype(pixels.dtype.newbyteorder(">"))
    parts = [big] if not interlaced else [big[y::dy, x::dx] for x, y, dx, dy in ADAM7]
    raw = b"".join(b"\0" + row.tobytes() for part in parts if part.size for row in part)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], bits, COLOURS[channels], 0, 0, int(interlaced))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def png_chunks(data):
    at = 8
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(name + body)
        yield name, body
        at += 12 + length


def read_png(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks = list(png_chunks(data))
    assert chunks[-1][0] == b"IEND"
    width, height, bits, colour, _, _, interlace = struct.unpack(">IIBBBBB", chunks[0][1])
    assert bits in (8, 16) and not interlace
    channels = CHANNELS[colour]
    raw = np.frombuffer(zlib.decompress(b"".join(body for name, body in chunks if name == b"IDAT")), np.uint8)
    step = channels * bits // 8
    raw = raw.reshape(height, 1 + width * step)
    rows = np.zeros((height + 1, width * step + step), np.uint8)  # a zero row above, a zero pixel to the left
    for r in range(height):
        kind, line = raw[r, 0], raw[r, 1:]
        for i in range(width * step):
            left, up, corner = int(rows[r + 1, i]), int(rows[r, i + step]), int(rows[r, i])
            if kind == 4:
                estimate = left + up - corner
                guess = min((left, up, corner), key=lambda v: abs(estimate - v))
            else:
                guess = [0, left, up, (left + up) // 2][kind]
            rows[r + 1, i + step] = (int(line[i]) + guess) % 256
    pixels = rows[1:, step:].tobytes()
    out = np.frombuffer(pixels, ">u2" if bits == 16 else "u1").reshape(height, width, channels)
    return out.astype(out.dtype.newbyteorder("="))[..., 0 if channels == 1 else slice(None)]


FORMATS = {"u": 1, "i": 2, "f": 3}
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 7: 1, 16: 8}


def tiff_bytes(pages, order="<", tile=None, apart=False, strip_rows=None, deflate=False, white_is_0=False, big=False,
               extra=()):
    """`pages` is rows x columns[ x channels], or a list of such."""
    pages = pages if isinstance(pages, list) else [pages]
    word, count_type = (order + "Q", 16) if big else (order + "I", 4)
    magic = {"<": b"II", ">": b"MM"}[order]
    out = bytearray(magic + (struct.pack(order + "HHHQ", 43, 8, 0, 16) if big else struct.pack(order + "HI", 42, 8)))
    link = len(out) - struct.calcsize(word)
    for page in pages:
        page = np.asarray(page)
        pixels = page[..., None] if page.ndim == 2 else page
        rows, columns, channels = pixels.shape
        stored = pixels.astype(pixels.dtype.newbyteorder(order))
        planes = [stored[..., c:c + 1] for c in range(channels)] if apart else [stored]
        pieces = []
        for plane in planes:
            if tile:
                for r in range(0, rows, tile):
                    for c in range(0, columns, tile):
                        piece = np.zeros((tile, tile, plane.shape[2]), stored.dtype)
                        part = plane[r:r + tile, c:c + tile]
                        piece[:part.shape[0], :part.shape[1]] = part
                        pieces.append(piece.tobytes())
            else:
                high = strip_rows or rows
                pieces += [plane[r:r + high].tobytes() for r in range(0, rows, high)]
        if deflate:
            pieces = [zlib.compress(piece) for piece in pieces]
        places = []
        for piece in pieces:
            out += b"\0" * (-len(out) % 8)
            places.append(len(out))
            out += piece
        bits = 8 * page.dtype.itemsize
        tags = [(256, 4, [columns]), (257, 4, [rows]), (258, 3, [bits] * channels), (259, 3, [8 if deflate else 1]),
                (262, 3, [0 if white_is_0 else 2 if channels >= 3 else 1]), (277, 3, [channels]),
                (284, 3, [2 if apart else 1]), (339, 3, [FORMATS[page.dtype.kind]] * channels), *extra]
        if tile:
            tags += [(322, 3, [tile]), (323, 3, [tile]), (324, count_type, places), (325, count_type, [len(p) for p in pieces])]
        else:
            tags += [(273, count_type, places), (278, 4, [strip_rows or rows]), (279, count_type, [len(p) for p in pieces])]
        if channels in (2, 4):
            tags.append((338, 3, [2]))
        entries = b""
        for tag, kind, values in sorted(tags):
            data = b"".join(struct.pack(order + {1: "B", 3: "H", 4: "I", 7: "B", 16: "Q"}[kind], v) for v in values)
            room = 8 if big else 4
            if len(data) > room:
                out += b"\0" * (-len(out) % 8)
                place, data = len(out), out.extend(data) or b""
                data = struct.pack(word, place)
            entries += struct.pack(order + ("HHQ" if big else "HHI"), tag, kind, len(values)) + data.ljust(room, b"\0")
        out += b"\0" * (-len(out) % 8)
        struct.pack_into(word, out, link, len(out))
        out += struct.pack(order + ("Q" if big else "H"), len(tags)) + entries
        link = len(out)
        out += struct.pack(word, 0)
    return bytes(out)


def tiff_pages(data):
    """The tags of every page: {number: values}."""
    order = {b"II": "<", b"MM": ">"}[data[:2]]
    assert struct.unpack(order + "H", data[2:4])[0] == 42
    at = struct.unpack(order + "I", data[4:8])[0]
    while at:
        tags = {}
        for i in range(struct.unpack(order + "H", data[at:at + 2])[0]):
            entry = at + 2 + 12 * i
            tag, kind, count = struct.unpack(order + "HHI", data[entry:entry + 8])
            size = SIZES[kind] * count
            place = entry + 8 if size <= 4 else struct.unpack(order + "I", data[entry + 8:entry + 12])[0]
            letter = {1: "B", 2: "c", 3: "H", 4: "I", 5: "II", 7: "B", 16: "Q"}[kind]
            tags[tag] = struct.unpack(order + letter * count, data[place:place + size])
        yield order, tags
        at = struct.unpack(order + "I", data[at + 2 + 12 * len(tags):at + 6 + 12 * len(tags)])[0]


def read_tiff(data):
    """What the tool writes: strips, deflated, with a predictor. Several pages are stacked."""
    pages = []
    for order, tags in tiff_pages(data):
        columns, rows, channels = tags[256][0], tags[257][0], tags[277][0]
        kind = {1: "u", 2: "i", 3: "f"}[tags[339][0]]
        size = tags[258][0] // 8
        assert tags[259][0] == 8 and tags[284][0] == 1
        raw = b"".join(zlib.decompress(data[place:place + length]) for place, length in zip(tags[273], tags[279]))
        predictor = tags.get(317, (1,))[0]
        if predictor == 3:  # bytes of a row sorted by significance, then differences
            lines = np.frombuffer(raw, np.uint8).reshape(rows, -1).copy()
            for c in range(channels, lines.shape[1]):
                lines[:, c] += lines[:, c - channels]
            planes = lines.reshape(rows, size, columns * channels)
            pixels = np.frombuffer(np.moveaxis(planes, 1, 2).tobytes(), f">f{size}").reshape(rows, columns, channels)
        else:
            pixels = np.frombuffer(raw, f"{order}{kind}{size}").reshape(rows, columns, channels)
            if predictor == 2:
                pixels = np.cumsum(pixels, axis=1, dtype=pixels.dtype)
        pages.append(pixels.astype(f"{kind}{size}")[..., 0 if channels == 1 else slice(None)])
    return pages[0] if len(pages) == 1 else np.stack(pages)
