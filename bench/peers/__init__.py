"""The candidates: each module has a class with `name`, `version` and `candidates(problem, verb, arrays)`."""

import dataclasses
import time
from typing import Callable, Optional


@dataclasses.dataclass
class Candidate:
    """One way of a peer to do a verb on a problem."""

    variant: str
    seconds: Callable[[int], float]  # of that many calls
    results: Callable[[], list]  # what the last call made, in memory order
    keep: object = None  # what must live as long as the candidate
    bytes_kept: Optional[int] = None  # between the forward pass and the VJP
    other_layout: bool = False  # in a layout of the peer's own: shown, but no competitor


def calls(function):
    """seconds(n) of a Python function."""

    def seconds(n):
        start = time.perf_counter()
        for _ in range(n):
            function()
        return time.perf_counter() - start

    return seconds
