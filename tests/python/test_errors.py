"""Wrong arguments: what kind of error, and that its sentence names the function, the argument, the value and what is legal."""

import re

import numpy as np
import pytest

import cenote

X = np.zeros((2, 6, 6), np.float32)
INT = np.zeros((6, 6), np.int32)
SLIDING = cenote.Sliding((2, 2))


class OnAnotherDevice:
    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_):
        raise AssertionError("not asked for")


class Broken:
    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        raise BufferError("the buffer is gone")


TABLE = [
    # geometry: values
    (lambda: cenote.max_pool(X, 2), ValueError,
     "max_pool: kernel is the single number 2; name the axes it is meant for, or give one number per pooled axis (input 2x6x6)"),
    (lambda: cenote.max_pool(X, (0, 2)), ValueError, "max_pool: kernel is 0 on axis 1; it must be at least 1 (input 2x6x6)"),
    (lambda: cenote.max_pool(X, (2, 2), 0), ValueError, "max_pool: stride is 0 on axis 1; it must be at least 1"),
    (lambda: cenote.max_pool(X, (2, 2), -1), ValueError, "max_pool: stride is -1 on axis 1; it must be at least 1"),
    (lambda: cenote.max_pool(X, (2, 2), dilation=0), ValueError, "max_pool: dilation is 0 on axis 1; it must be at least 1"),
    (lambda: cenote.max_pool(X, (2, 2), padding=-1), ValueError, "max_pool: padding is -1 on axis 1; it must be at least 0"),
    (lambda: cenote.max_pool(X, (2, 7)), ValueError,
     "max_pool: kernel spans 7 cells on axis 2, but the padded input has 6; the dilated kernel may not be larger than the padded input"),
    (lambda: cenote.max_pool(X, (2, 2, 2, 2)), ValueError, "max_pool: kernel names 4 axes, but the input has 3"),
    (lambda: cenote.max_pool(X, ()), ValueError, "max_pool: kernel names no axis; give one number per pooled axis"),
    (lambda: cenote.max_pool(X, (2, 2), (1, 1, 1)), ValueError, "max_pool: stride has 3 entries; expected 1 or 2"),
    (lambda: cenote.max_pool(X, (2, 2), padding=[(0, 1)] * 3), ValueError, "max_pool: padding has 3 entries; expected 1 or 2"),
    (lambda: cenote.max_pool(X, (2, 2), padding=[(0, 1, 2), (0, 1)]), ValueError,
     "max_pool: padding is [(0, 1, 2), (0, 1)]; it must be an integer, one per pooled axis, a (low, high) pair per pooled axis"),
    (lambda: cenote.max_pool(X, (2, 2), padding="full"), ValueError,
     "max_pool: padding is 'full'; it must be an integer, one per pooled axis, a (low, high) pair per pooled axis, 'same', 'same_lower' or 'valid'"),
    (lambda: cenote.max_pool(X, (2, 2), axes=(0, 0)), ValueError, "max_pool: axes names axis 0 twice"),
    (lambda: cenote.max_pool(X, (2, 2), axes=(0, 3)), ValueError,
     "max_pool: axes names axis 3; the input has 3 axes, so -3 to 3-1 are legal"),
    (lambda: cenote.max_pool(X, (2, 2), axes=()), ValueError, "max_pool: axes names no axis"),
    (lambda: cenote.max_pool(X, (2, 2), axes=(0, 1, 2)), ValueError, "max_pool: kernel has 2 entries; expected 1 or 3"),
    (lambda: cenote.max_pool(X, (2**64, 2)), ValueError, "max_pool: kernel is (18446744073709551616, 2); it must be a number of 64 bits"),
    (lambda: cenote.max_pool(X, (2, 2), 1, 2**62), ValueError, "max_pool: padding overflows 64 bits"),
    (lambda: cenote.max_pool(np.zeros((2, 0, 6)), (2, 2)), ValueError, "max_pool: input has size 0 on pooled axis 1"),
    (lambda: cenote.max_pool(np.zeros((1,) * 17), (1,)), ValueError, "max_pool: x has 17 axes; at most 16 are supported"),
    (lambda: cenote.adaptive_max_pool(X, (0, 2)), ValueError, "adaptive_max_pool: output_size is 0 on axis 1; it must be at least 1"),
    (lambda: cenote.adaptive_avg_pool(X, 3), ValueError, "adaptive_avg_pool: output_size is the single number 3"),
    (lambda: cenote.global_max_pool(X), ValueError, "global_max_pool: axes names no axis; say which axes to pool"),
    (lambda: cenote.global_max_pool(X, spatial_dims=4), ValueError, "global_max_pool: spatial_dims names 4 axes, but the input has 3"),
    (lambda: cenote.global_max_pool(X, spatial_dims=0), ValueError, "global_max_pool: spatial_dims is 0; it must be None, or how many"),
    (lambda: cenote.global_max_pool(X, spatial_dims=2, axes=1), ValueError,
     "global_max_pool: spatial_dims asks for 2 axes and axes names 1; give one of the two"),
    (lambda: cenote.max_pool2d(X, 3, padding=2), ValueError,
     "max_pool2d: padding is 2 on axis 1; PyTorch's names allow at most half the effective kernel, here 1"),
    (lambda: cenote.max_pool2d(X[0], 2), ValueError, "max_pool2d: input has 2 axes; expected 3 (unbatched) or one more (batched)"),
    (lambda: cenote.max_pool2d(X, 0), ValueError, "max_pool2d: kernel_size is 0 on axis 1"),
    (lambda: cenote.avg_pool3d(X[None], (9, 1, 1)), ValueError, "avg_pool3d: kernel_size spans 9 cells on axis 1"),
    (lambda: cenote.adaptive_avg_pool2d(X, (2, -1)), ValueError, "adaptive_avg_pool2d: output_size is -1 on axis 2; it must be at least 1"),
    # geometry: kinds
    (lambda: cenote.max_pool(X, (2.0, 2)), TypeError, "max_pool: kernel is (2.0, 2); it must be an integer or a sequence of integers"),
    (lambda: cenote.max_pool(X, "2x2"), TypeError, "max_pool: kernel is '2x2'; it must be an integer or a sequence"),
    (lambda: cenote.max_pool(X, None), TypeError, "max_pool: kernel is None; it must be an integer or a sequence"),
    (lambda: cenote.max_pool(X, (2, True)), TypeError, "max_pool: kernel is (2, True); it must be an integer or a sequence"),
    (lambda: cenote.max_pool(X, (2, 2), 1.5), TypeError, "max_pool: stride is 1.5; it must be None, an integer or a sequence"),
    (lambda: cenote.max_pool(X, (2, 2), padding=None), TypeError, "max_pool: padding is None; it must be an integer, one per"),
    (lambda: cenote.max_pool(X, (2, 2), padding=[(0, 1.5), 1]), TypeError, "max_pool: padding is [(0, 1.5), 1]; it must be"),
    (lambda: cenote.max_pool(X, (2, 2), ceil_mode="yes"), TypeError, "max_pool: ceil_mode is 'yes'; it must be True or False"),
    (lambda: cenote.max_pool(X, (2, 2), axes="hw"), TypeError, "max_pool: axes is 'hw'; it must be an integer or a sequence"),
    (lambda: cenote.global_max_pool(X, spatial_dims=1.5), TypeError, "global_max_pool: spatial_dims is 1.5; it must be an integer"),
    (lambda: cenote.Sliding(None), TypeError, "Sliding: kernel is None; it must be an integer or a sequence"),
    # operators
    (lambda: cenote.max_pool(X, (2, 2), ties="last"), ValueError, "max_pool: ties is 'last'; it must be 'first', 'all' or 'split'"),
    (lambda: cenote.max_pool(X, (2, 2), ties=1), TypeError, "max_pool: ties is 1; it must be 'first', 'all' or 'split'"),
    (lambda: cenote.smooth_max_pool(X, (2, 2), beta=0), ValueError, "smooth_max_pool: beta is 0; it must be finite and not 0"),
    (lambda: cenote.smooth_max_pool(X, (2, 2), beta=np.nan), ValueError, "smooth_max_pool: beta is nan; it must be finite and not 0"),
    (lambda: cenote.smooth_max_pool(X, (2, 2), beta="1"), TypeError, "smooth_max_pool: beta is '1'; it must be a number"),
    (lambda: cenote.smooth_max_pool(X, (2, 2), beta=10**400), ValueError, "it must be within the range of a float"),
    (lambda: cenote.smooth_max_pool(X, (2, 2), beta=1, padding_mode="wrap"), ValueError,
     "smooth_max_pool: padding_mode is 'wrap'; it must be 'zeros' or 'ignore'"),
    (lambda: cenote.lp_pool(X, (2, 2), p=0.5), ValueError, "lp_pool: p is 0.5; it must be finite and at least 1"),
    (lambda: cenote.lp_pool2d(X, 0, 2), ValueError, "lp_pool2d: norm_type is 0; it must be finite and at least 1"),
    (lambda: cenote.avg_pool(X, (2, 2), divisor_override=0), ValueError, "avg_pool: divisor_override is 0; any other integer is legal"),
    (lambda: cenote.avg_pool(X, (2, 2), divisor_override=1.5), TypeError, "avg_pool: divisor_override is 1.5; it must be an integer"),
    (lambda: cenote.avg_pool(X, (2, 2), count_include_pad=1), TypeError, "avg_pool: count_include_pad is 1; it must be True or False"),
    (lambda: cenote.forward("max", SLIDING, X), TypeError, "forward: op is 'max'; it must be an operator: Max, Min, Average"),
    (lambda: cenote.forward(cenote.Max, SLIDING, X), TypeError, "it must be an operator"),
    (lambda: cenote.forward(cenote.Max(), (2, 2), X), TypeError, "forward: geometry is (2, 2); it must be a geometry: Sliding"),
    (lambda: cenote.forward(cenote.Max(), cenote.resolve(SLIDING, (4, 4)), X), ValueError, "forward: x has 3 axes; expected 2"),
    # arrays
    (lambda: cenote.max_pool([[1, 2]], (1, 1)), TypeError, "max_pool: x is of type list; give a numpy array, or another array"),
    (lambda: cenote.max_pool((8, (2,), (1,), 0), (2,)), TypeError, "max_pool: x is of type tuple; give a numpy array"),
    (lambda: cenote.max_pool(3.0, (1,)), TypeError, "max_pool: x is of type float; give a numpy array"),
    (lambda: cenote.max_pool(X.astype(object), (2, 2)), TypeError, "max_pool: x has dtype object; legal are float64, float32"),
    (lambda: cenote.max_pool(X.astype(complex), (2, 2)), TypeError, "max_pool: x has dtype complex128; legal are float64"),
    (lambda: cenote.max_pool(X > 0, (2, 2)), TypeError, "max_pool: x has dtype bool; legal are float64"),
    (lambda: cenote.max_pool(X.astype("M8[s]"), (2, 2)), TypeError, "max_pool: x has dtype datetime64[s]; legal are"),
    (lambda: cenote.max_pool(X.astype(np.longdouble), (2, 2)), TypeError, "legal are float64, float32"),
    (lambda: cenote.max_pool(X.astype(">f4"), (2, 2)), TypeError, "max_pool: x has dtype >f4, which is not in this machine's byte order"),
    (lambda: cenote.max_pool(np.ma.masked_array(X), (2, 2)), TypeError, "max_pool: x is a masked array, whose mask would be ignored"),
    (lambda: cenote.max_pool(np.zeros(8, "u1,f4")["f1"], (2,)), ValueError, "max_pool: x is not aligned"),
    (lambda: cenote.max_pool(np.zeros(8, np.dtype("f8,f4", align=False))["f0"], (2,)), ValueError, "make a copy of it first"),
    (lambda: cenote.max_pool(OnAnotherDevice(), (2,)), TypeError, "max_pool: x is on the device (2, 0)"),
    (lambda: cenote.max_pool(Broken(), (2,)), TypeError, "max_pool: x cannot be read through DLPack: the buffer is gone"),
    (lambda: cenote.smooth_max_pool(INT, (2, 2), beta=1), TypeError, "smooth_max_pool: x has dtype int32; smooth_max is defined for float64"),
    (lambda: cenote.lp_pool(INT, (2, 2), p=2), TypeError, "lp_pool: x has dtype int32; lp is defined for float64"),
    (lambda: cenote.max_pool_jvp(INT, INT, (2, 2)), TypeError, "max_pool_jvp: x has dtype int32; derivatives are defined for float64"),
    (lambda: cenote.max_pool_jvp(X, X.astype(float), (2, 2)), TypeError, "max_pool_jvp: dx has dtype float64, but x has float32"),
    (lambda: cenote.max_pool_jvp(X, X[:1], (2, 2)), ValueError, "max_pool_jvp: dx has size 1 on axis 0; expected 2"),
    (lambda: cenote.max_pool_vjp(X, X, (2, 2)), ValueError, "max_pool_vjp: gy has size 6 on axis 1; expected 3 (got 2x6x6, expected 2x3x3)"),
    (lambda: cenote.max_pool_vjp((6, 6), X, (2, 2)), TypeError, "max_pool_vjp: x is of type tuple; give a numpy array"),
    (lambda: cenote.avg_pool_vjp((6, -6), X, (2, 2)), ValueError, "avg_pool_vjp: input is -6 on axis 1; a size must be at least 0"),
    (lambda: cenote.avg_pool_vjp((6, 6), X, (2, 2)), ValueError, "avg_pool_vjp: gy has 3 axes; expected 2"),
    (lambda: cenote.avg_pool_jvp((6, 6), X, (2, 2)), ValueError, "avg_pool_jvp: dx has 3 axes; expected 2"),
    (lambda: cenote.linearize(cenote.Max(), SLIDING, INT), TypeError, "linearize: x has dtype int32; derivatives are defined"),
    (lambda: cenote.linearize(cenote.Max(), SLIDING, X).push(X[:1]), ValueError, "push: dx has size 1 on axis 0; expected 2"),
    (lambda: cenote.linearize(cenote.Sum(), SLIDING, X).push(X[:1]), ValueError, "push: dx has size 1 on axis 0; expected 2"),
    (lambda: cenote.linearize(cenote.Max(), SLIDING, X).pull(X), ValueError, "pull: gy has size 6 on axis 1; expected 3"),
    (lambda: cenote.linearize(cenote.Max(), SLIDING, X).pull(X.astype(float)), TypeError, "pull: gy has dtype float64, but the point"),
    (lambda: cenote.linearize(cenote.Average(), SLIDING, X).winners(), TypeError, "winners: only Max and Min have winners"),
    (lambda: cenote.linearize(cenote.Average(), SLIDING, X).indices(), TypeError, "indices: only Max and Min have winners"),
    # questions to windows
    (lambda: cenote.output_shape(SLIDING), TypeError, "output_shape: shape is None; it must be given"),
    (lambda: cenote.output_shape(SLIDING, (1, 1)), ValueError, "output_shape: kernel spans 2 cells on axis 0"),
    (lambda: cenote.output_shape(SLIDING, (4, "4")), TypeError, "output_shape: shape is (4, '4'); it must be an integer or a sequence"),
    (lambda: cenote.output_shape(SLIDING, (-4, 4)), ValueError, "output_shape: shape is -4 on axis 0; a size must be at least 0"),
    (lambda: cenote.windows(SLIDING, (4, 4), (0, 2)), ValueError, "windows: index is 2 on axis 1; legal are 0 to 2-1"),
    (lambda: cenote.windows(SLIDING, (4, 4), (0,)), ValueError, "windows: index has 1 axes; expected 2"),
    # execution
    (lambda: cenote.set_num_threads(-3), ValueError, "set_num_threads: threads is -3; it must be at least 0"),
    (lambda: cenote.set_num_threads(1.5), TypeError, "set_num_threads: threads is 1.5; it must be an integer"),
    (lambda: cenote.set_num_threads(10**12), ValueError, "set_num_threads: threads is 1000000000000; it must be"),
    (lambda: cenote.limit_target("mmx"), ValueError, "limit_target: name is `mmx`; it must be one of targets()"),
    (lambda: cenote.limit_target(2), TypeError, "limit_target: name is 2; it must be a name of targets()"),
]


@pytest.mark.parametrize(("call", "kind", "words"), TABLE, ids=[re.sub(r"\W+", "_", row[2])[:60] for row in TABLE])
def test_wrong_arguments_are_refused_with_a_sentence(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    assert words in str(caught.value)


def test_calls_work_after_errors():
    for call, *_ in TABLE:
        with pytest.raises((ValueError, TypeError)):
            call()
        assert cenote.max_pool(X, (2, 2)).shape == (2, 3, 3)
