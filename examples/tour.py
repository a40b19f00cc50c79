#!/usr/bin/env python3
"""A tour of cenote in Python, cell by cell: pools a bundled picture, looks at gradients, trains a small network.

    python examples/tour.py [folder]

prints what it finds and leaves its pictures in the folder (build/python-tour), with a page, index.html, that shows them
in order. Editors that know `# %%` run it cell by cell.
"""

# %% A picture, and somewhere to put others
import html
import pathlib
import struct
import sys
import zlib

import cenote
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else HERE.parent / "build" / "python-tour")
folder.mkdir(parents=True, exist_ok=True)
page = ["<!doctype html><title>cenote in Python</title><body style='font: 16px sans-serif; max-width: 60em; margin: auto'>"]


def say(text):
    print(text)
    page.append(f"<pre>{html.escape(str(text))}</pre>")


def show(name, picture, zoom=1):
    """A picture of numbers from 0 (black) to 1 (white), as PNG: rows, each after a byte 0, compressed."""
    cells = np.kron(np.clip(picture, 0, 1), np.ones((zoom, zoom)))
    pixels = (cells * 255).round().astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 0, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n"
    for kind, body in ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
        data += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    file = folder / (name.replace(",", "").replace(" ", "_") + ".png")
    file.write_bytes(data)
    page.append(f"<figure style='display: inline-block'><img src='{file.name}'><figcaption>{name}</figcaption></figure>")


# The file's lines: P5, a comment, width and height, the maximum, then the pixels.
_, _, size, _, pixels = (HERE / "data" / "cenote.pgm").read_bytes().split(b"\n", 4)
width, height = map(int, size.split())
picture = np.frombuffer(pixels, np.uint8).reshape(height, width).astype(np.float32) / 255
show("the picture", picture, 4)

# %% Every operator on the same windows
windows = cenote.Sliding((4, 4))
say(cenote.resolve(windows, picture.shape))
for name, op in {
    "max": cenote.Max(),
    "min": cenote.Min(),
    "average": cenote.Average(),
    "smooth max, beta 8": cenote.SmoothMax(8),
    "smooth min, beta -8": cenote.SmoothMax(-8),
}.items():
    pooled = cenote.forward(op, windows, picture)
    say(f"{name:<20} {pooled.min():.3f} to {pooled.max():.3f}")
    show(name, pooled, 16)

# %% Between average and maximum: more beta, harder choice
for beta in (0.5, 5, 50):
    gap = cenote.smooth_max_pool(picture, (4, 4), beta=beta) - cenote.max_pool(picture, (4, 4))
    say(f"beta {beta:>4}: at most {gap.max():.4f} above the maximum, log(16) / beta = {np.log(16) / beta:.4f} is the bound")

# %% Where the gradient goes
ones = np.ones(cenote.output_shape(windows, picture.shape), np.float32)
for name, op in {"max": cenote.Max(), "max, ties share": cenote.Max("split"), "smooth max": cenote.SmoothMax(8)}.items():
    gradient = cenote.vjp(op, windows, picture, ones)
    show(f"gradient of {name}", gradient / gradient.max(), 4)
    say(f"gradient of {name:<16} reaches {np.count_nonzero(gradient > 1e-3):>5} of {gradient.size} cells, sum {gradient.sum():.1f}")

# %% Forward and backward are one derivative: <J dx, gy> = <dx, J^T gy>
random = np.random.default_rng(0)
dx, gy = random.standard_normal(picture.shape), random.standard_normal(ones.shape)
point = picture.astype(np.float64)
at = cenote.linearize(cenote.Max(), windows, point)
left, right = (at.push(dx) * gy).sum(), (dx * at.pull(gy)).sum()
say(f"{left:.12f} = {right:.12f}, from {at.bytes_kept} bytes kept")

# %% A network that learns to tell bright upper halves from bright lower halves
g = cenote.Graph("float32")
x, target = g.input("x", (16, 1, 8, 8)), g.input("target", (16, 2))
kernel, weights = g.input("kernel", (4, 1, 3, 3)), g.input("weights", (2, 16))
features = g.smooth_max_pool(g.relu(g.conv(x, kernel, padding=1)), (4, 4), beta=4.0)
g.output("loss", g.softmax_cross_entropy(g.linear(g.flatten(features), weights), target))
program = g.program(by=[kernel, weights])
say(program)
(folder / "network.svg").write_text(program._repr_svg_())
page.append("<figure><img src='network.svg'><figcaption>the network</figcaption></figure>")

samples = random.random((16, 1, 8, 8)).astype(np.float32)
labels = np.arange(16) % 2
samples[labels == 0, :, :4] += 1
samples[labels == 1, :, 4:] += 1
arrays = {
    "x": samples,
    "target": np.eye(2, dtype=np.float32)[labels],
    "kernel": random.standard_normal((4, 1, 3, 3)).astype(np.float32) / 3,
    "weights": random.standard_normal((2, 16)).astype(np.float32) / 4,
}
for step in range(61):
    values, gradients = program.value_and_vjp(arrays)
    if step % 20 == 0:
        say(f"step {step:>2}: loss {values['loss']:.4f}")
    for name in ("kernel", "weights"):
        arrays[name] -= 0.2 * gradients[name]

(folder / "index.html").write_text("\n".join(page))
print(f"pictures: {folder / 'index.html'}")
