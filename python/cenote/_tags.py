"""Numbers by which the compiled part recognises operators and windows that are passed as tuples.

A tuple of such a number and the arguments as the caller wrote them is what a call costs the least with; the compiled
part checks them. The order is that of the enumeration in arguments.hpp.
"""

(
    MAX,
    MIN,
    AVERAGE,
    SUM,
    SMOOTH_MAX,
    LP,
    TORCH_LP,
    SLIDING,
    ADAPTIVE,
    GLOBAL,
    TORCH_SLIDING,
    TORCH_ADAPTIVE,
) = range(1 << 40, (1 << 40) + 12)
