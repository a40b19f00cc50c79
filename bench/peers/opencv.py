"""OpenCV: dilate and boxFilter where a pooling is an image filter, its network module for the others."""

import math

import cv2
import numpy as np

from peers import Candidate, calls
from peers.onnx_runtime import model_of
from problem import LeftOut

PLANES = 8  # a filter call per plane beyond this measures Python
WINDOW = 25  # the network module is for windows up to this


class OpenCv:
    name = "opencv"

    def __init__(self, threads, folder):
        cv2.setNumThreads(threads)
        self.threads = threads
        self.version = cv2.__version__

    def candidates(self, problem, verb, arrays):
        if verb != "forward":
            raise LeftOut("OpenCV has no derivatives")
        found, reasons = [], []
        for way in (self.filters, self.network):
            try:
                found.append(way(problem, arrays))
            except LeftOut as reason:
                reasons.append(str(reason))
        if not found:
            raise LeftOut("; ".join(reasons))
        return found

    def filters(self, p, arrays):
        same = all(s == 1 and d == 1 and k % 2 == 1 and lo == hi == k // 2 for s, d, k, lo, hi in
                   zip(p.stride, p.dilation, p.kernel, p.low, p.high))
        if p.rank != 2 or p.windows != "sliding" or not same or p.op not in ("max", "avg"):
            raise LeftOut("not an image filter")
        if p.dtype not in ("f32", "f64", "u8", "i16") or (p.op == "avg" and p.dtype not in ("f32", "f64")):
            raise LeftOut("no filter for this type")
        planes = math.prod(p.shape[:2])
        if planes > PLANES:
            raise LeftOut("too many planes for a call each")
        x = arrays.x.reshape(planes, *p.space)
        y = np.zeros_like(x)
        element = np.ones(p.kernel, np.uint8)

        def run():
            for source, target in zip(x, y):
                if p.op == "max":
                    cv2.dilate(source, element, dst=target)
                else:
                    cv2.boxFilter(source, -1, p.kernel[::-1], dst=target, borderType=cv2.BORDER_CONSTANT)

        return Candidate("dilate" if p.op == "max" else "boxFilter", calls(run), lambda: [y.reshape(p.out_shape)])

    def network(self, p, arrays):
        if p.dtype not in ("f32", "i8"):
            raise LeftOut("the network module computes in f32")
        if max(p.kernel) > WINDOW and p.rank == 2:
            raise LeftOut("the network module is for small windows")
        if p.dtype == "i8":
            raise LeftOut("the network module computes in f32")
        try:
            net = cv2.dnn.readNetFromONNX(np.frombuffer(model_of(p), np.uint8))
            net.setInput(arrays.x.reshape(p.shape))
            net.forward()
        except cv2.error as error:
            raise LeftOut("the network module refuses: " + str(error).strip().splitlines()[-1][:100])
        box = []

        def run():
            box[:] = [net.forward()]

        return Candidate("dnn", calls(run), lambda: [box[0].reshape(p.out_shape)], keep=net)
