"""Modules: PyTorch's own, with cenote's functions in `forward`, and smooth maxima.

Being subclasses, they have PyTorch's constructors, `extra_repr` and state, and pass for what they replace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from .. import _core
from . import _torch_names as functions

if TYPE_CHECKING:
    from .._types import Ints


class _MaxPool(nn.modules.pooling._MaxPoolNd):
    _pool: Any

    def forward(self, input: Tensor) -> Any:
        arguments = self.kernel_size, self.stride, self.padding, self.dilation
        return self._pool(input, *arguments, ceil_mode=self.ceil_mode, return_indices=self.return_indices)


class MaxPool1d(_MaxPool, nn.MaxPool1d):
    """`torch.nn.MaxPool1d`, computed by cenote."""

    _pool = staticmethod(functions.max_pool1d)


class MaxPool2d(_MaxPool, nn.MaxPool2d):
    """`torch.nn.MaxPool2d`, computed by cenote."""

    _pool = staticmethod(functions.max_pool2d)


class MaxPool3d(_MaxPool, nn.MaxPool3d):
    """`torch.nn.MaxPool3d`, computed by cenote."""

    _pool = staticmethod(functions.max_pool3d)


class AvgPool1d(nn.AvgPool1d):
    """`torch.nn.AvgPool1d`, computed by cenote."""

    def forward(self, input: Tensor) -> Tensor:
        arguments = self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        return functions.avg_pool1d(input, *arguments)


class AvgPool2d(nn.AvgPool2d):
    """`torch.nn.AvgPool2d`, computed by cenote."""

    def forward(self, input: Tensor) -> Tensor:
        arguments = self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        return functions.avg_pool2d(input, *arguments, self.divisor_override)


class AvgPool3d(nn.AvgPool3d):
    """`torch.nn.AvgPool3d`, computed by cenote."""

    def forward(self, input: Tensor) -> Tensor:
        arguments = self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        return functions.avg_pool3d(input, *arguments, self.divisor_override)


class _LPPool(nn.modules.pooling._LPPoolNd):
    _pool: Any

    def forward(self, input: Tensor) -> Tensor:
        out: Tensor = self._pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)
        return out


class LPPool1d(_LPPool, nn.LPPool1d):
    """`torch.nn.LPPool1d`, computed by cenote."""

    _pool = staticmethod(functions.lp_pool1d)


class LPPool2d(_LPPool, nn.LPPool2d):
    """`torch.nn.LPPool2d`, computed by cenote."""

    _pool = staticmethod(functions.lp_pool2d)


class LPPool3d(_LPPool, nn.LPPool3d):
    """`torch.nn.LPPool3d`, computed by cenote."""

    _pool = staticmethod(functions.lp_pool3d)


class _AdaptiveMaxPool(nn.modules.pooling._AdaptiveMaxPoolNd):
    _pool: Any

    def forward(self, input: Tensor) -> Any:
        return self._pool(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool, nn.AdaptiveMaxPool1d):
    """`torch.nn.AdaptiveMaxPool1d`, computed by cenote."""

    _pool = staticmethod(functions.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool, nn.AdaptiveMaxPool2d):
    """`torch.nn.AdaptiveMaxPool2d`, computed by cenote."""

    _pool = staticmethod(functions.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool, nn.AdaptiveMaxPool3d):
    """`torch.nn.AdaptiveMaxPool3d`, computed by cenote."""

    _pool = staticmethod(functions.adaptive_max_pool3d)


class _AdaptiveAvgPool(nn.modules.pooling._AdaptiveAvgPoolNd):
    _pool: Any

    def forward(self, input: Tensor) -> Tensor:
        out: Tensor = self._pool(input, self.output_size)
        return out


class AdaptiveAvgPool1d(_AdaptiveAvgPool, nn.AdaptiveAvgPool1d):
    """`torch.nn.AdaptiveAvgPool1d`, computed by cenote."""

    _pool = staticmethod(functions.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool, nn.AdaptiveAvgPool2d):
    """`torch.nn.AdaptiveAvgPool2d`, computed by cenote."""

    _pool = staticmethod(functions.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool, nn.AdaptiveAvgPool3d):
    """`torch.nn.AdaptiveAvgPool3d`, computed by cenote."""

    _pool = staticmethod(functions.adaptive_avg_pool3d)


class _SmoothMaxPool(nn.Module):
    """The smooth maximum of each window: log(sum(exp(beta * x))) / beta. beta < 0 makes it a smooth minimum."""

    __constants__ = ["kernel_size", "stride", "padding", "dilation", "ceil_mode", "beta", "padding_mode"]
    _pool: Any

    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        ceil_mode: bool = False,
        *,
        beta: float,
        padding_mode: str = "zeros",
    ) -> None:
        super().__init__()
        _core.SmoothMax(beta, padding_mode)  # complains now instead of in the first call
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.ceil_mode = ceil_mode
        self.beta = beta
        self.padding_mode = padding_mode

    def forward(self, input: Tensor) -> Tensor:
        arguments = self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        out: Tensor = self._pool(input, *arguments, beta=self.beta, padding_mode=self.padding_mode)
        return out

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__constants__)


class SmoothMaxPool1d(_SmoothMaxPool):
    """`smooth_max_pool1d` as a module.

    >>> import torch, cenote.torch
    >>> cenote.torch.SmoothMaxPool1d(2, beta=10.0)(torch.zeros(1, 2)).shape
    torch.Size([1, 1])
    """

    _pool = staticmethod(functions.smooth_max_pool1d)


class SmoothMaxPool2d(_SmoothMaxPool):
    """`smooth_max_pool2d` as a module.

    >>> import torch, cenote.torch
    >>> cenote.torch.SmoothMaxPool2d(2, beta=10.0)(torch.zeros(1, 2, 2)).shape
    torch.Size([1, 1, 1])
    """

    _pool = staticmethod(functions.smooth_max_pool2d)


class SmoothMaxPool3d(_SmoothMaxPool):
    """`smooth_max_pool3d` as a module.

    >>> import torch, cenote.torch
    >>> cenote.torch.SmoothMaxPool3d(2, beta=10.0)(torch.zeros(1, 2, 2, 2)).shape
    torch.Size([1, 1, 1, 1])
    """

    _pool = staticmethod(functions.smooth_max_pool3d)
