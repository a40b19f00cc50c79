"""The chart: every entry a row, every candidate a dot, in units of memcpy on a logarithmic axis."""

import html
import math

MARKS = {  # colour on light, colour on dark, shape
    "cenote": ("#0b7a75", "#2fd3c6", "dot"),
    "torch": ("#d1495b", "#ff7d8c", "circle"),
    "onnxruntime": ("#3066be", "#7fa8ff", "square"),
    "onednn": ("#8f5fc2", "#c49bf2", "triangle"),
    "xnnpack": ("#d98324", "#ffb35c", "diamond"),
    "opencv": ("#5c7c2f", "#a8cf6f", "cross"),
    "jax": ("#6b7280", "#aab2bf", "plus"),
}
ROW, LABEL, WIDTH, GAP, TOP, BOTTOM = 19, 128, 420, 44, 76, 34
LOW, HIGH = 0.4, 1000.0


def place(value, left):
    value = min(max(value, LOW), HIGH)
    return left + WIDTH * math.log(value / LOW) / math.log(HIGH / LOW)


def mark(kind, name, x, y, title):
    tip = f"<title>{html.escape(title)}</title>"
    shapes = {
        "dot": f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.2">{tip}</circle>',
        "circle": f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.4">{tip}</circle>',
        "square": f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6">{tip}</rect>',
        "triangle": f'<path d="M{x:.1f} {y - 4:.1f}l4 7h-8z">{tip}</path>',
        "diamond": f'<path d="M{x:.1f} {y - 4.4:.1f}l4.4 4.4l-4.4 4.4l-4.4 -4.4z">{tip}</path>',
        "cross": f'<path class="line" d="M{x - 3:.1f} {y - 3:.1f}l6 6m0 -6l-6 6">{tip}</path>',
        "plus": f'<path class="line" d="M{x - 4:.1f} {y:.1f}h8m-4 -4v8">{tip}</path>',
    }
    return f'<g class="{name}">{shapes[kind]}</g>'


def style():
    def rules(index):
        return "".join(f".{name}{{fill:{colours[index]};stroke:none}}.{name} .line{{fill:none;stroke:{colours[index]};"
                       "stroke-width:1.8}" for name, colours in MARKS.items())

    light = (".back{fill:#ffffff}.band{fill:#f4f6f8}text{fill:#24292f;font:12px system-ui,sans-serif}"
             ".soft{fill:#6b7280;font-size:11px}.title{font-size:15px;font-weight:600}"
             ".grid{stroke:#dfe3e8}.unit{stroke:#24292f;stroke-dasharray:3 3}.reach{stroke:#0b7a75;stroke-opacity:.28;"
             "stroke-width:3}")
    dark = (".back{fill:#0d1117}.band{fill:#151b23}text{fill:#e6edf3}.soft{fill:#9aa4b2}.grid{stroke:#2b333d}"
            ".unit{stroke:#e6edf3}.reach{stroke:#2fd3c6}")
    return f"<style>{light}{rules(0)}@media (prefers-color-scheme:dark){{{dark}{rules(1)}}}</style>"


def panel(results, names, verb, title, left, height):
    out = [f'<text class="title" x="{left}" y="24">{title}</text>']
    for tick in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000):
        x = place(tick, left)
        out.append(f'<line class="{"unit" if tick == 1 else "grid"}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" '
                   f'y2="{height - BOTTOM + 4}"/>')
        text = "≥1000" if tick == HIGH else f"{tick:g}"
        out.append(f'<text class="soft" x="{x:.1f}" y="{height - BOTTOM + 20}" text-anchor="middle">{text}</text>')
    for number, name in enumerate(names):
        y = TOP + ROW * number + ROW / 2
        figures = {p: r for p in MARKS if (r := results.ratio(name, verb, p))}
        rivals = [figures[p] for p in figures if p != "cenote"]
        if "cenote" in figures and rivals:
            a, b = place(figures["cenote"], left), place(min(rivals), left)
            out.append(f'<line class="reach" x1="{a:.1f}" x2="{b:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        for peer in sorted(figures, key=lambda p: p == "cenote"):  # cenote on top
            out.append(mark(MARKS[peer][2], peer, place(figures[peer], left), y, f"{name}: {peer} {figures[peer]:.2f}"))
    return out


def draw(results, titles):
    names = results.names("entries")
    height = TOP + ROW * len(names) + BOTTOM
    width = LABEL + 2 * WIDTH + GAP + 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
           f'role="img" aria-label="Forward and VJP of every entry in units of memcpy">', style(),
           f'<rect class="back" width="{width}" height="{height}"/>']
    for number, name in enumerate(names):
        y = TOP + ROW * number
        if number % 2 == 0:
            out.append(f'<rect class="band" x="6" y="{y}" width="{width - 12}" height="{ROW}"/>')
        out.append(f'<text x="{LABEL - 8}" y="{y + ROW / 2 + 4:.1f}" text-anchor="end">{name}</text>')
    out += panel(results, names, "forward", "Forward, times memcpy, one thread", LABEL + 4, height)
    out += panel(results, names, "vjp", "VJP, times memcpy, one thread", LABEL + 4 + WIDTH + GAP, height)
    x = LABEL + 10
    for peer in MARKS:
        out.append(mark(MARKS[peer][2], peer, x, 46, titles[peer]))
        out.append(f'<text x="{x + 10}" y="50">{titles[peer]}</text>')
        x += 30 + 7.2 * len(titles[peer])
    out.append(f'<text class="soft" x="{x + 6:.0f}" y="50">dashed: memcpy; lower is better</text>')
    return "\n".join(out + ["</svg>", ""])
