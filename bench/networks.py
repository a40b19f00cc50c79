#!/usr/bin/env python3
"""Makes networks.txt from a JSON list of layers: bench/networks.py <network_shapes.json> > bench/networks.txt"""

import json
import math
import re
import sys

LIMIT = 8_000_000  # bytes of input and output: larger batches are cut
OPERATORS = {"max": ["max"], "avg": ["avg"], "avg_exclude_pad": ["avgx"], "max+avg": ["max", "avgx"]}


def line(layer, op, seen):
    """The layer as a problem, or nothing if one like it is there."""
    cells = layer["c"] * (math.prod(layer["in"]) + math.prod(layer["out"])) * 4
    batch = max(1, min(layer["n"], LIMIT // cells))
    pads = []
    for n, o, k, s, lo, d in zip(layer["in"], layer["out"], layer["kernel"], layer["stride"], layer["pad_lo"],
                                 layer["dilation"]):
        # As much as the last window needs; what is negative in the source means cells that no window covers.
        pads.append((lo, max(0, (o - 1) * s + (k - 1) * d + 1 - n - lo)))
    if op == "avgx" and not any(sum(pads, ())):
        op = "avg"  # without padding both mean the same
    join = lambda entries: "x".join(str(e) for e in entries)
    fields = f"{op:4} f32 nchw {join([batch, layer['c'], *layer['in']]):20} {join(layer['kernel'])}"
    if layer["stride"] != layer["kernel"]:
        fields += f" s={join(layer['stride'])}"
    if any(sum(pads, ())):
        fields += " p=" + join(str(lo) if lo == hi else f"{lo},{hi}" for lo, hi in pads)
    if any(d != 1 for d in layer["dilation"]):
        fields += f" d={join(layer['dilation'])}"
    if fields in seen:
        return None
    seen.add(fields)
    return fields


def main():
    data = json.load(open(sys.argv[1]))
    print("# The pooling layers of known networks and of oneDNN's test list, made by bench/networks.py: equal ones once,")
    print(f"# batches cut to {LIMIT // 1000000} MB of input and output. Described in the head of problems.txt.")
    for group, key in (("networks", "shapes"), ("synthetic", "synthetic")):
        print(f"\n[{group}]")
        seen, names = set(), set()
        for layer in data[key]:
            for op in OPERATORS[layer["op"]]:
                fields = line(layer, op, seen)
                if not fields:
                    continue
                network = {"framework-anonymous": "layer", "benchdnn-synthetic": ""}.get(layer["network"], layer["network"])
                title = layer["layer"].removeprefix("layer_").removeprefix("shapes_")
                name = re.sub(r"[^a-z0-9]+", "_", f"{network} {title}".lower()).strip("_")
                if len(OPERATORS[layer["op"]]) > 1:
                    name += "_" + op
                unique, n = name, 2
                while unique in names:
                    unique, n = f"{name}_{n}", n + 1
                names.add(unique)
                print(f"{unique:44} {fields}")


main()
