"""PyTorch, each verb in every way that is worth a try; the fastest counts."""

import math

import numpy as np
import torch
import torch.autograd.forward_ad as forward_ad
import torch.nn.functional as F

from peers import Candidate, calls
from problem import LeftOut

aten = torch.ops.aten
MEMORY_LIMIT = 4 << 30  # bytes of unfolded windows that one call may take


class PyTorch:
    name = "torch"

    def __init__(self, threads, folder):
        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)
        torch.set_grad_enabled(False)
        self.version = torch.__version__

    def tensor(self, problem, array):
        raw = torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16) if problem.dtype == "bf16" else (
            torch.from_numpy(array))
        return raw.movedim(-1, 1) if problem.channels_last else raw

    def array(self, problem, tensor):
        tensor = (tensor.movedim(1, -1) if problem.channels_last else tensor).detach()
        if tensor.is_quantized:
            tensor = tensor.int_repr()
        return tensor.float().numpy() if problem.dtype == "bf16" else tensor.numpy()

    def empty(self, problem, space):
        shape = (*problem.shape[:2], *space)
        kind = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
                "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16}[problem.dtype]
        if not problem.channels_last:
            return torch.zeros(shape, dtype=kind)
        return torch.zeros((shape[0], *shape[2:], shape[1]), dtype=kind).movedim(-1, 1)

    def candidates(self, problem, verb, arrays):
        if verb == "vjp_from_input":
            raise LeftOut("PyTorch's backward pass starts from kept indices")
        ways = Ways(self, problem, arrays)
        found = getattr(ways, verb)()
        if not found:
            raise LeftOut("PyTorch has no such pooling")
        return [Candidate(name, calls(run), lambda last=last: [self.array(problem, t) for t in last()], keep=ways,
                          bytes_kept=kept) for name, run, last, kept in found]


class Ways:
    """The ways to do one problem. Each verb gives (name, run, results, bytes kept)."""

    def __init__(self, peer, problem, arrays):
        self.peer, self.p, self.arrays = peer, problem, arrays
        self.x = peer.tensor(problem, arrays.x)
        self.rank = problem.rank
        self.dims = tuple(range(2, 2 + self.rank))
        self.windows = None
        if problem.windows != "adaptive":
            self.padding, self.ceil = problem.torch_padding()
            self.windows = (list(problem.kernel), list(problem.stride), list(self.padding))
        if problem.op in ("avg", "avgx") and any(d != 1 for d in problem.dilation):
            raise LeftOut("PyTorch's average has no dilation")

    def named(self, name, function):
        """A way that makes new tensors."""
        box = []

        def run():
            box[:] = [function()]

        return name, run, lambda: list(box[0]) if isinstance(box[0], tuple) else box, None

    def into(self, name, function, *targets):
        """A way that writes into given tensors."""
        return name, function, lambda: list(targets), None

    def flat(self, tensor):
        """One pooled axis as two: the operators with indices start at two."""
        return tensor.unsqueeze(2) if self.rank == 1 else tensor

    def flat_windows(self):
        kernel, stride, padding = self.windows
        dilation = list(self.p.dilation)
        if self.rank > 1:
            return kernel, stride, padding, dilation
        return [1, *kernel], [1, *stride], [0, *padding], [1, *dilation]

    def function(self, x=None):
        """The pooling as a function of x."""
        p, x = self.p, self.x if x is None else x
        if p.op == "smax":
            return self.smooth_unfold(x)
        if p.windows == "adaptive":
            pool = {"max": F.adaptive_max_pool2d, "avg": F.adaptive_avg_pool2d}
            if self.rank != 2 or p.op not in pool:
                raise LeftOut("not written for this number of axes")
            return pool[p.op](x, p.kernel)
        if p.op == "max":
            pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[self.rank - 1]
            return pool(x, *self.windows, list(p.dilation), self.ceil)
        pool = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[self.rank - 1]
        return pool(x, *self.windows, self.ceil, p.op == "avg")

    def forward(self):
        p, x = self.p, self.x
        if p.dtype in ("u8", "i8"):
            return self.quantized()
        ways = [self.named("functional", self.function)]
        y = self.peer.empty(p, p.out_space)
        if p.op == "smax":
            if p.rank == 2:
                ways.append(self.named("strided unfold, logsumexp", lambda: self.smooth_strided(x)))
            return ways
        if p.windows == "adaptive":
            if p.op == "avg":
                ways.append(self.into("out=", lambda: aten.adaptive_avg_pool2d.out(x, p.kernel, out=y), y))
            return ways
        if p.windows == "global":
            reduce = torch.amax if p.op == "max" else torch.mean
            ways.append(self.into("amax" if p.op == "max" else "mean",
                                  lambda: reduce(x, self.dims, True, out=y), y))
        if self.rank > 1 and p.op == "max":
            ways += [way for way in self.winners() if way[0] == "out="]
        elif self.rank > 1:
            pool = aten.avg_pool2d.out if self.rank == 2 else aten.avg_pool3d.out
            kernel, stride, padding = self.windows
            ways.append(self.into("out=", lambda: pool(x, kernel, stride, padding, self.ceil, p.op == "avg", None, out=y),
                                  y))
        return ways

    def quantized(self):
        p = self.p
        ways = []
        if p.op == "max" and self.rank == 2:
            kind = torch.quint8 if p.dtype == "u8" else torch.qint8
            store = torch._make_per_tensor_quantized_tensor(self.x, 1.0, 0)
            if store.dtype == kind:
                ways.append(self.named("quantized", lambda: torch.quantized_max_pool2d(
                    store, *self.windows, list(p.dilation), self.ceil)))
        ways.append(self.named("functional", self.function))
        return ways

    def winners(self):
        p = self.p
        if p.windows == "adaptive":
            raise LeftOut("not written for adaptive windows")
        pool = aten.max_pool3d_with_indices if self.rank == 3 else aten.max_pool2d_with_indices
        x = self.flat(self.x)
        y = self.peer.empty(p, p.out_space)
        out = self.flat(y)
        indices = torch.zeros_like(out, dtype=torch.int64)
        windows = self.flat_windows()
        kept = indices.numel() * 8
        ways = [("out=", lambda: pool.out(x, *windows, self.ceil, out=out, indices=indices), lambda: [y], kept)]
        box = []

        def run():
            box[:] = pool(x, *windows, self.ceil)

        ways.append(("functional", run, lambda: [box[0].squeeze(2) if self.rank == 1 else box[0]], kept))
        return ways

    def vjp(self):
        p = self.p
        gy = self.peer.tensor(p, self.arrays.gy)
        gx = self.peer.empty(p, p.space)
        if p.op == "smax":
            with torch.enable_grad():
                x = self.x.detach().requires_grad_(True)
                y = self.smooth_unfold(x)
            return [self.named("unfold, logsumexp", lambda: torch.autograd.grad(y, x, gy, retain_graph=True))]
        if p.windows == "adaptive":
            if p.op != "avg" or self.rank != 2:
                raise LeftOut("not written for this adaptive pooling")
            return [self.named("adaptive", lambda: aten._adaptive_avg_pool2d_backward(gy, self.x))]
        x, flat_gy, flat_gx = self.flat(self.x), self.flat(gy), self.flat(gx)
        kernel, stride, padding, dilation = self.flat_windows()
        if p.op == "max":
            pool, back = ((aten.max_pool3d_with_indices, aten.max_pool3d_with_indices_backward) if self.rank == 3 else
                          (aten.max_pool2d_with_indices, aten.max_pool2d_with_indices_backward))
            _, indices = pool(x, kernel, stride, padding, dilation, self.ceil)
            kept = indices.numel() * 8
            return [("out=", lambda: back.grad_input(flat_gy, x, kernel, stride, padding, dilation, self.ceil, indices,
                                                     grad_input=flat_gx), lambda: [gx], kept)]
        back = aten.avg_pool3d_backward if self.rank == 3 else aten.avg_pool2d_backward
        ways = [("out=", lambda: back.grad_input(flat_gy, x, kernel, stride, padding, self.ceil, p.op == "avg", None,
                                                 grad_input=flat_gx), lambda: [gx], 0)]
        if p.windows == "global":
            ways.append(("div, copy_", lambda: gx.copy_((gy / math.prod(p.space)).expand_as(gx)), lambda: [gx], 0))
        return ways

    def jvp(self):
        dx = self.peer.tensor(self.p, self.arrays.dx)

        def dual():
            with forward_ad.dual_level():
                pair = forward_ad.unpack_dual(self.function(forward_ad.make_dual(self.x, dx)))
                return pair.primal, pair.tangent

        ways = [self.named("forward_ad", dual)]
        ways.append(self.named("func.jvp", lambda: torch.func.jvp(self.function, (self.x,), (dx,))))
        return ways

    def smooth_unfold(self, x):
        p = self.p
        if p.rank != 2 or p.dtype not in ("f32", "f64"):
            raise LeftOut("unfold is for two axes")
        if math.prod(p.shape[:2]) * p.taps * math.prod(p.out_space) * p.type.itemsize > MEMORY_LIMIT:
            raise LeftOut("the unfolded windows take too much memory")
        windows = F.unfold(x, list(p.kernel), list(p.dilation), list(p.low), list(p.stride))
        windows = windows.view(*p.shape[:2], p.taps, -1)
        scaled = windows if p.beta == 1 else windows * p.beta
        sums = torch.logsumexp(scaled, 2)
        return (sums if p.beta == 1 else sums / p.beta).view(*p.shape[:2], *p.out_space)

    def smooth_strided(self, x):
        p = self.p
        if math.prod(p.shape[:2]) * p.taps * math.prod(p.out_space) * p.type.itemsize > MEMORY_LIMIT:
            raise LeftOut("the unfolded windows take too much memory")
        padded = F.pad(x, (p.low[1], p.high[1], p.low[0], p.high[0])) if p.padded else x
        windows = padded.unfold(2, p.kernel[0], p.stride[0]).unfold(3, p.kernel[1], p.stride[1])
        scaled = windows if p.beta == 1 else windows * p.beta
        sums = torch.logsumexp(scaled, (-2, -1))
        return sums if p.beta == 1 else sums / p.beta
