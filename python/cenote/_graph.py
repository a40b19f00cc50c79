"""Programs of operators with values, forward and backward derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._core import GraphBase, Node, Program, ProgramMap
from ._tags import ADAPTIVE, AVERAGE, GLOBAL, LP, MAX, MIN, SLIDING, SMOOTH_MAX, SUM

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Union

    from ._types import Array, Ints, Padding, Result

    Arrays = Union[Mapping[str, Array], Sequence[Array]]


class Graph(GraphBase):
    """A program of nodes, written once, that gives its value, its forward-mode derivative and its gradient.

    Nodes are added by its methods and by `+`, `-`, `*` and `@` between nodes. Shapes are checked as they are added.

    >>> import numpy as np, cenote
    >>> g = cenote.Graph("float64")
    >>> x, w = g.input("x", (1, 4, 4)), g.input("w", (2, 1, 3, 3))
    >>> y = g.max_pool(g.relu(g.conv(x, w, padding=1)), (2, 2))
    >>> g.output("total", g.sum(y))
    >>> g
    node  name      shape    inputs  parameters              keeps
    0     x         1x4x4            input
    1     w         2x1x3x3          input
    2     conv      2x4x4    0 1     3x3 stride 1 padding 1
    3     relu      2x4x4    2                               256 B
    4     max_pool  2x2x2    3       sliding 2x2 stride 2    8 B
    5     sum       scalar   4       global, output `total`
    >>> arrays = {"x": np.arange(16.0).reshape(1, 4, 4), "w": np.ones((2, 1, 3, 3))}
    >>> g.evaluate(arrays)
    {'total': array(540.)}
    >>> g.vjp(arrays)["x"]
    array([[[2., 4., 4., 2.],
            [4., 8., 8., 4.],
            [4., 8., 8., 4.],
            [2., 4., 4., 2.]]])

    Each call plans anew; `program()` plans once, and runs many times.
    """

    def __init__(self, dtype: object = "float32") -> None:
        super().__init__(dtype)

    def evaluate(self, inputs: Arrays) -> dict[str, Result]:
        """The outputs, from inputs by name or in order."""
        return self.program().evaluate(inputs)

    def jvp(self, inputs: Arrays, tangents: Arrays) -> tuple[dict[str, Result], dict[str, Result]]:
        """The outputs and their tangents."""
        return self.program().jvp(inputs, tangents)

    def vjp(self, inputs: Arrays, output_gradients: Arrays | None = None) -> dict[str, Result]:
        """The gradients by every input. Where the only output is one number, its gradient is by default 1."""
        return self.program().vjp(inputs, output_gradients)

    def value_and_vjp(
        self, inputs: Arrays, output_gradients: Arrays | None = None
    ) -> tuple[dict[str, Result], dict[str, Result]]:
        """The outputs, and the gradients by every input."""
        return self.program().value_and_vjp(inputs, output_gradients)

    def linearize(self, inputs: Arrays) -> ProgramMap:
        """The outputs as `.value`, and the derivative at this point for many `.push(tangents)` and `.pull(gradients)`."""
        return self.program().linearize(inputs)

    def hessian_vector_product(
        self, inputs: Arrays, direction: Arrays, output_gradients: Arrays | None = None
    ) -> tuple[dict[str, Result], dict[str, Result], dict[str, Result]]:
        """The outputs, the gradients by every input, and the derivatives of the gradients in a direction.

        >>> import numpy as np, cenote
        >>> g = cenote.Graph("float64")
        >>> x = g.input("x", (2,))
        >>> g.output("y", g.sum(x * x * x))  # of which 6 x is the second derivative
        >>> g.hessian_vector_product([np.array([1.0, 2])], [np.array([1.0, 10])])[2]
        {'x': array([  6., 120.])}
        """
        return self.program().hessian_vector_product(inputs, direction, output_gradients)

    def max_pool(
        self,
        x: Node,
        kernel: Ints,
        stride: Ints | None = None,
        padding: Padding = 0,
        dilation: Ints = 1,
        *,
        ceil_mode: bool = False,
        axes: Ints | None = None,
        ties: str = "first",
    ) -> Node:
        """`cenote.max_pool` as a node."""
        return self.pool(x, (MAX, ties), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), "max_pool")

    def min_pool(
        self,
        x: Node,
        kernel: Ints,
        stride: Ints | None = None,
        padding: Padding = 0,
        dilation: Ints = 1,
        *,
        ceil_mode: bool = False,
        axes: Ints | None = None,
        ties: str = "first",
    ) -> Node:
        """`cenote.min_pool` as a node."""
        return self.pool(x, (MIN, ties), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), "min_pool")

    def avg_pool(
        self,
        x: Node,
        kernel: Ints,
        stride: Ints | None = None,
        padding: Padding = 0,
        dilation: Ints = 1,
        *,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        axes: Ints | None = None,
    ) -> Node:
        """`cenote.avg_pool` as a node."""
        windows = (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes)
        return self.pool(x, (AVERAGE, count_include_pad, divisor_override), windows, "avg_pool")

    def sum_pool(
        self,
        x: Node,
        kernel: Ints,
        stride: Ints | None = None,
        padding: Padding = 0,
        dilation: Ints = 1,
        *,
        ceil_mode: bool = False,
        axes: Ints | None = None,
    ) -> Node:
        """`cenote.sum_pool` as a node."""
        return self.pool(x, (SUM,), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), "sum_pool")

    def smooth_max_pool(
        self,
        x: Node,
        kernel: Ints,
        stride: Ints | None = None,
        padding: Padding = 0,
        dilation: Ints = 1,
        *,
        beta: float,
        ceil_mode: bool = False,
        padding_mode: str = "zeros",
        axes: Ints | None = None,
    ) -> Node:
        """`cenote.smooth_max_pool` as a node."""
        windows = (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes)
        return self.pool(x, (SMOOTH_MAX, beta, padding_mode), windows, "smooth_max_pool")

    def lp_pool(
        self,
        x: Node,
        kernel: Ints,
        stride: Ints | None = None,
        padding: Padding = 0,
        dilation: Ints = 1,
        *,
        p: float,
        ceil_mode: bool = False,
        axes: Ints | None = None,
    ) -> Node:
        """`cenote.lp_pool` as a node."""
        return self.pool(x, (LP, p), (SLIDING, kernel, stride, padding, dilation, ceil_mode, axes), "lp_pool")

    def adaptive_max_pool(self, x: Node, output_size: Ints, *, axes: Ints | None = None, ties: str = "first") -> Node:
        """`cenote.adaptive_max_pool` as a node."""
        return self.pool(x, (MAX, ties), (ADAPTIVE, output_size, axes), "adaptive_max_pool")

    def adaptive_avg_pool(self, x: Node, output_size: Ints, *, axes: Ints | None = None) -> Node:
        """`cenote.adaptive_avg_pool` as a node."""
        return self.pool(x, (AVERAGE, True, None), (ADAPTIVE, output_size, axes), "adaptive_avg_pool")

    def adaptive_smooth_max_pool(self, x: Node, output_size: Ints, *, beta: float, axes: Ints | None = None) -> Node:
        """`cenote.adaptive_smooth_max_pool` as a node."""
        return self.pool(x, (SMOOTH_MAX, beta, "zeros"), (ADAPTIVE, output_size, axes), "adaptive_smooth_max_pool")

    def global_max_pool(
        self,
        x: Node,
        *,
        spatial_dims: int | None = None,
        axes: Ints | None = None,
        keepdims: bool = True,
        ties: str = "all",
    ) -> Node:
        """`cenote.global_max_pool` as a node."""
        return self.pool(x, (MAX, ties), (GLOBAL, spatial_dims, axes, keepdims), "global_max_pool")

    def global_avg_pool(
        self, x: Node, *, spatial_dims: int | None = None, axes: Ints | None = None, keepdims: bool = True
    ) -> Node:
        """`cenote.global_avg_pool` as a node."""
        return self.pool(x, (AVERAGE, True, None), (GLOBAL, spatial_dims, axes, keepdims), "global_avg_pool")

    def global_smooth_max_pool(
        self,
        x: Node,
        *,
        beta: float,
        spatial_dims: int | None = None,
        axes: Ints | None = None,
        keepdims: bool = True,
    ) -> Node:
        """`cenote.global_smooth_max_pool` as a node."""
        windows = (GLOBAL, spatial_dims, axes, keepdims)
        return self.pool(x, (SMOOTH_MAX, beta, "zeros"), windows, "global_smooth_max_pool")


__all__ = ["Graph", "Node", "Program", "ProgramMap"]
