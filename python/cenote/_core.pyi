"""The compiled part of cenote."""

from collections.abc import Sequence
from typing import Any, overload

import numpy
import numpy.typing


def version() -> str: ...

class Operator:
    """
    How a window becomes a number: Max, Min, Average, Sum, SmoothMax or Lp.
    """

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __reduce__(self) -> tuple[object, ...]: ...

class Max(Operator):
    """The largest real tap. `ties` is 'first', 'all' or 'split'."""

    def __init__(self, ties: str = 'first') -> None: ...

    @property
    def ties(self) -> str: ...

class Min(Operator):
    """The smallest real tap. `ties` is 'first', 'all' or 'split'."""

    def __init__(self, ties: str = 'first') -> None: ...

    @property
    def ties(self) -> str: ...

class Average(Operator):
    """
    The sum of the real taps over the taps in the padded input, over the real taps, or over `divisor_override`.
    """

    def __init__(self, count_include_pad: bool = True, divisor_override: int | None = None) -> None: ...

    @property
    def count_include_pad(self) -> bool: ...

    @property
    def divisor_override(self, /) -> int | None: ...

class Sum(Operator):
    """The sum of the real taps."""

    def __init__(self) -> None: ...

class SmoothMax(Operator):
    """
    log(sum(exp(beta * taps))) / beta. `padding_mode` is 'zeros' or 'ignore'.
    """

    def __init__(self, beta: float, padding_mode: str = 'zeros') -> None: ...

    @property
    def beta(self) -> float: ...

    @property
    def padding_mode(self) -> str: ...

class Lp(Operator):
    """The p-norm of the real taps, p at least 1."""

    def __init__(self, p: float) -> None: ...

    @property
    def p(self) -> float: ...

class Windows:
    """Which cells feed which output: Sliding, Adaptive, Global or Geometry."""

class ShapelessWindows(Windows):
    """Sliding, Adaptive or Global."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __reduce__(self) -> tuple[object, ...]: ...

class Sliding(ShapelessWindows):
    """
    Windows that slide. The stride is by default the kernel; the pooled axes are by default the last ones, as many as
    the kernel has entries. `padding` is an int, one per axis, (low, high) pairs, 'same', 'same_lower' or 'valid'.
    """

    def __init__(self, kernel: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | str | Sequence[int | tuple[int, int]] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False, axes: int | Sequence[int] | None = None) -> None: ...

    @property
    def kernel(self) -> object: ...

    @property
    def stride(self) -> object: ...

    @property
    def padding(self) -> object: ...

    @property
    def dilation(self) -> object: ...

    @property
    def ceil_mode(self) -> object: ...

    @property
    def axes(self) -> object: ...

class Adaptive(ShapelessWindows):
    """
    Windows that divide each pooled axis into `output_size` nearly equal parts.
    """

    def __init__(self, output_size: int | Sequence[int], axes: int | Sequence[int] | None = None) -> None: ...

    @property
    def output_size(self) -> object: ...

    @property
    def axes(self) -> object: ...

class Global(ShapelessWindows):
    """
    One window over the last `spatial_dims` axes, or over the ones named. They stay behind with size 1, or are dropped.
    """

    def __init__(self, spatial_dims: int | None = None, axes: int | Sequence[int] | None = None, keepdims: bool = True) -> None: ...

    @property
    def spatial_dims(self) -> object: ...

    @property
    def axes(self) -> object: ...

    @property
    def keepdims(self) -> object: ...

class Geometry(Windows):
    """Windows on an input of one shape, checked. `resolve` makes them."""

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    @property
    def input_shape(self, /) -> tuple[int, ...]: ...

    @property
    def output_shape(self, /) -> tuple[int, ...]: ...

def resolve(geometry: object, shape: object, caller: str = 'resolve') -> Geometry: ...

def output_shape(geometry: object, shape: object, caller: str = 'output_shape') -> tuple[int, ...]: ...

def windows(geometry: object, shape: object, index: object) -> list[tuple[tuple[int, ...], bool]]: ...

def forward(op: object, geometry: object, x: object, out: object = None, caller: str = 'forward', threads: int = 0) -> numpy.typing.NDArray[Any]: ...

def forward_and_indices(op: object, geometry: object, x: object, out: object = None, caller: str = 'forward_and_indices') -> tuple[numpy.typing.NDArray[Any], numpy.typing.NDArray[numpy.int64]]: ...

def jvp(op: object, geometry: object, x: object, dx: object, out: object = None, caller: str = 'jvp', threads: int = 0) -> numpy.typing.NDArray[Any]: ...

def forward_and_jvp(op: object, geometry: object, x: object, dx: object, out: object, caller: str = 'forward_and_jvp', threads: int = 0) -> tuple[Any, Any]:
    """Value and tangent; `out` is called for each."""

def vjp(op: object, geometry: object, x: object, gy: object, out: object = None, caller: str = 'vjp', threads: int = 0) -> numpy.typing.NDArray[Any]: ...

def type_numbers() -> dict[str, int]:
    """How (address, shape, strides, type) tuples name their types."""

class LinearMap:
    """
    A derivative at a point. It keeps what it needs: one byte an output for a maximum, nothing for an
    average, the input for everything else.
    """

    @property
    def value(self, /) -> numpy.typing.NDArray[Any]: ...

    def push(self, dx: object, out: object = None) -> numpy.typing.NDArray[Any]:
        """J dx, of the output's shape."""

    def pull(self, gy: object, out: object = None) -> numpy.typing.NDArray[Any]:
        """J^T gy, of the input's shape."""

    def winners(self) -> numpy.typing.NDArray[Any]:
        """
        The winning tap of each output as its offset inside the window, in the smallest unsigned type that holds it;
        the type's largest number where a window has no real tap.
        """

    def indices(self) -> numpy.typing.NDArray[numpy.int64]:
        """
        The winning cell of each output as PyTorch numbers it: flat in the pooled axes, or -1.
        """

    @property
    def bytes_kept(self) -> int: ...

    def __repr__(self) -> str: ...

def linearize(op: object, geometry: object, x: object) -> LinearMap: ...

def winner_bytes(geometry: object, shape: object) -> int:
    """How many bytes the winner of one output takes."""

def forward_with_winners(op: object, geometry: object, x: object, out: object, winners: object, caller: str = 'forward_with_winners', threads: int = 0) -> tuple[Any, Any]: ...

def push_winners(geometry: object, shape: object, winners: object, dx: object, out: object = None, caller: str = 'push_winners', threads: int = 0) -> numpy.typing.NDArray[Any]: ...

def pull_winners(geometry: object, shape: object, winners: object, gy: object, out: object = None, caller: str = 'pull_winners', threads: int = 0) -> numpy.typing.NDArray[Any]: ...

def flat_indices(geometry: object, shape: object, winners: object, out: object = None) -> numpy.typing.NDArray[numpy.int64]: ...

class Node:
    """A node of a graph."""

    @property
    def shape(self, /) -> tuple[int, ...]: ...

    @property
    def number(self) -> int: ...

    def __repr__(self) -> str: ...

    def __add__(self, arg: Node, /) -> Node: ...

    def __sub__(self, arg: Node, /) -> Node: ...

    @overload
    def __mul__(self, arg: Node, /) -> Node: ...

    @overload
    def __mul__(self, arg: float, /) -> Node: ...

    def __matmul__(self, arg: Node, /) -> Node: ...

    def __rmul__(self, arg: float, /) -> Node: ...

    def __neg__(self) -> Node: ...

class GraphBase:
    """What cenote.Graph is made of."""

    def __init__(self, dtype: object) -> None: ...

    def input(self, name: str, shape: Sequence[int]) -> Node:
        """An array that every run is given."""

    def constant(self, value: object, name: str = 'constant') -> Node:
        """An array that is part of the graph."""

    def detach(self, x: Node) -> Node:
        """The same values, through which no derivative passes."""

    def output(self, name: str, of: Node) -> None:
        """Names what a program returns."""

    def pool(self, x: Node, op: object, geometry: object, caller: str = 'pool') -> Node:
        """Any operator on any windows."""

    def conv(self, x: Node, weights: Node, bias: Node | None = None, *, stride: object = 1, padding: object = 0, dilation: object = 1) -> Node:
        """
        A convolution in any number of dimensions: x is (batch,) channels, space; weights are outputs, channels, window.
        """

    def linear(self, x: Node, weights: Node, bias: Node | None = None) -> Node:
        """
        x weights^T + bias over the last axis of x; weights are outputs, inputs.
        """

    def concatenate(self, xs: Sequence[Node], axis: int) -> Node:
        """Arrays one after the other along an axis."""

    def reshape(self, x: Node, shape: Sequence[int]) -> Node:
        """The same elements as another shape; nothing is copied."""

    def flatten(self, x: Node, start_axis: int = 1) -> Node:
        """The axes from `start_axis` on as one; nothing is copied."""

    def sum(self, x: Node, axes: int | Sequence[int] | None = None, keepdims: bool = False) -> Node:
        """The sum over axes, by default over all of them."""

    def mean(self, x: Node, axes: int | Sequence[int] | None = None, keepdims: bool = False) -> Node:
        """The mean over axes, by default over all of them."""

    def program(self, by: Sequence[Node] | None = None) -> Program:
        """
        What is left of the graph once everything that no output needs is gone, with its memory planned. `by` names the
        inputs that derivatives are taken by; by default all.
        """

    def __len__(self) -> int: ...

    def __repr__(self) -> str: ...

    def relu(self, x: Node) -> Node:
        """The larger of x and 0."""

    def tanh(self, x: Node) -> Node:
        """The hyperbolic tangent."""

    def exp(self, x: Node) -> Node:
        """The exponential."""

    def log(self, x: Node) -> Node:
        """The natural logarithm."""

    def matmul(self, a: Node, b: Node) -> Node:
        """The product of two matrices; also a @ b."""

    def softmax_cross_entropy(self, logits: Node, targets: Node) -> Node:
        """The mean over rows of -sum(targets * log(softmax(logits)))."""

    def mean_squared_error(self, a: Node, b: Node) -> Node:
        """The mean of (a - b)**2."""

class ProgramMap:
    """
    The derivative of a program at a point, to be applied as often as one likes: `value` has the
    outputs, `push` and `pull` take and return what `jvp` and `vjp` of the program do.
    """

    @property
    def value(self, /) -> dict[str, numpy.typing.NDArray[Any]]: ...

    def push(self, tangents: object) -> dict[str, numpy.typing.NDArray[Any]]:
        """The tangents of the outputs."""

    def pull(self, output_gradients: object = None) -> dict[str, numpy.typing.NDArray[Any]]:
        """The gradients by the inputs."""

class Program:
    """
    A graph as it was when the program was made, planned once. Inputs, tangents and output
    gradients are dicts of arrays by name, or sequences in the order of the graph; results are
    dicts. Tangents and output gradients that a dict leaves out are 0.
    """

    def evaluate(self, inputs: object) -> dict[str, numpy.typing.NDArray[Any]]:
        """The outputs."""

    def jvp(self, inputs: object, tangents: object) -> tuple[dict[str, numpy.typing.NDArray[Any]], dict[str, numpy.typing.NDArray[Any]]]:
        """The outputs, and their tangents."""

    def vjp(self, inputs: object, output_gradients: object = None) -> dict[str, numpy.typing.NDArray[Any]]:
        """
        The gradients by the inputs. Where the only output is one number, its gradient is by default 1.
        """

    def value_and_vjp(self, inputs: object, output_gradients: object = None) -> tuple[dict[str, numpy.typing.NDArray[Any]], dict[str, numpy.typing.NDArray[Any]]]:
        """The outputs, and the gradients by the inputs."""

    def linearize(self, inputs: object) -> ProgramMap:
        """
        The outputs, and the derivative at this point for many pushes and pulls.
        """

    def hessian_vector_product(self, inputs: object, direction: object, output_gradients: object = None) -> tuple[dict[str, numpy.typing.NDArray[Any]], dict[str, numpy.typing.NDArray[Any]], dict[str, numpy.typing.NDArray[Any]]]:
        """
        The outputs, the gradients, and the derivatives of the gradients in a direction.
        """

    def peak_memory(self) -> dict[str, int]:
        """Bytes that a run of each kind takes."""

    def __repr__(self) -> str: ...

def set_num_threads(threads: int) -> None:
    """
    How many threads a call may use; 0 returns to the initial number. No result depends on it.
    """

def get_num_threads() -> int:
    """How many threads a call may use."""

def target() -> str:
    """The instruction set in use."""

def targets() -> list[str]:
    """The instruction sets that this machine has, best first."""

def limit_target(name: str) -> None:
    """
    Lets kernels use this instruction set at most; an empty name lifts the limit.
    """

def xla_handlers(minor_version: int) -> dict[str, Any]:
    """
    The handlers for jax.ffi.register_ffi_target, made for version 0.minor_version of XLA's interface or older.
    """

def xla_signature(op: object, geometry: object, shape: object, dtype: object, caller: str, derivative: bool = False) -> tuple[Operator, Windows]:
    """
    Operator and windows of a call, checked, in the form in which programs keep them.
    """

def xla_check_like(shape: object, dtype: object, expected: object, x_dtype: object, argument: str, caller: str, point: str) -> None:
    """
    Complains unless a tangent or a gradient has the type of x and the expected shape.
    """

def xla_attributes(op: Operator, geometry: Windows) -> dict[str, int | float | str | list[int]]:
    """What the handlers read."""

def torch_start(tensor: object, parameter: object, modes: tuple[object, ...], is_grad_enabled: object, threads: object, is_last: object, new_last: object, new_bytes: object, new_indices: object, select: object, linear: object, other: object, forward_ad: object, is_forward_enabled: object, unpack_dual: object, make_dual: object) -> bool:
    """
    Hands over what the functions below call of torch; whether they compute on its threads.
    """

class TorchRest:
    """What the gradient of a call needs besides gy and the winners."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def channels_last(self) -> bool: ...

    @property
    def call(self) -> tuple[Any, ...]: ...

def torch_take_gradients(node_type: object) -> None:
    """
    Gives nodes of autograd that have a TorchRest as `rest` their gradients, where they are ordinary.
    """

def torch_ordinary(x: object, other: object = None) -> bool:
    """
    Whether nothing but a kernel, and autograd, would happen to x and another one.
    """

def torch_indices(x: object, call: tuple[Any, ...]) -> Any:
    """Value and indices, or None."""

def torch_tangent(x: object, call: tuple[Any, ...]) -> Any:
    """The value in forward mode, or None."""

def torch_forward(x: object, call: tuple[Any, ...]) -> Any:
    """The value, or None where torch should be asked."""

def torch_linear(x: object, call: tuple[Any, ...]) -> tuple[Any, TorchRest]:
    """The value, and what its gradient needs besides gy."""

def torch_select(x: object, call: tuple[Any, ...]) -> tuple[Any, Any, TorchRest]:
    """
    The value, the winners, and what the gradient needs besides gy and them.
    """
