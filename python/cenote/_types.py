"""What the functions take and give, for type checkers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Union

import numpy as np
import numpy.typing as npt


class DLPackArray(Protocol):
    """An array of another library: torch, jax, ..."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, Any]: ...


Result = npt.NDArray[Any]
Indices = npt.NDArray[np.int64]
if TYPE_CHECKING:
    Array = Union[npt.NDArray[Any], DLPackArray]
    ArrayOrShape = Union[Array, Sequence[int]]
    Ints = Union[int, Sequence[int]]
    Padding = Union[int, str, Sequence[Union[int, tuple[int, int]]]]
