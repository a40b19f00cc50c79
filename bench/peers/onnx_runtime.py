"""ONNX Runtime with bound inputs and outputs, one operator per model, no spinning threads."""

import onnx
import onnxruntime
from onnx import TensorProto, helper

from peers import Candidate, calls
from problem import LeftOut, aligned

ELEMENTS = {"f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "f16": TensorProto.FLOAT16,
            "u8": TensorProto.UINT8, "i8": TensorProto.INT8}


def model_of(problem, indices=False):
    """The problem as a model of one node."""
    if problem.channels_last and problem.shape[1] != 1:
        raise LeftOut("ONNX knows channels first only")
    if problem.dtype not in ELEMENTS:
        raise LeftOut("ONNX Runtime does not pool this type")
    if problem.op == "smax":
        raise LeftOut("ONNX has no smooth maximum")
    if problem.windows == "adaptive":
        raise LeftOut("ONNX has no adaptive windows")
    element = ELEMENTS[problem.dtype]
    outputs = ["y", "i"] if indices else ["y"]
    if problem.windows == "global" and not indices:
        node = helper.make_node("GlobalMaxPool" if problem.op == "max" else "GlobalAveragePool", ["x"], outputs)
    else:
        attributes = {"kernel_shape": problem.kernel, "strides": problem.stride, "pads": problem.low + problem.high}
        if any(d != 1 for d in problem.dilation):
            attributes["dilations"] = problem.dilation
        if problem.op != "max":
            attributes["count_include_pad"] = int(problem.op == "avg")
        node = helper.make_node("MaxPool" if problem.op == "max" else "AveragePool", ["x"], outputs, **attributes)
    out = (*problem.shape[:2], *problem.out_space)
    values = [helper.make_tensor_value_info("y", element, out)]
    if indices:
        values.append(helper.make_tensor_value_info("i", TensorProto.INT64, out))
    graph = helper.make_graph([node], "pool", [helper.make_tensor_value_info("x", element, problem.shape)], values)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    return model.SerializeToString()


class OnnxRuntime:
    name = "onnxruntime"

    def __init__(self, threads, folder):
        self.threads = threads
        self.version = onnxruntime.__version__
        onnxruntime.set_default_logger_severity(4)

    def candidates(self, problem, verb, arrays):
        if verb not in ("forward", "winners"):
            raise LeftOut("ONNX Runtime has no derivatives")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            session = onnxruntime.InferenceSession(model_of(problem, verb == "winners"), options,
                                                   providers=["CPUExecutionProvider"])
        except Exception as error:
            if isinstance(error, LeftOut):
                raise
            raise LeftOut("ONNX Runtime refuses: " + str(error).splitlines()[0][:120])
        x = arrays.x.reshape(problem.shape)
        y = aligned((*problem.shape[:2], *problem.out_space), problem.type)
        binding = session.io_binding()
        bound = [onnxruntime.OrtValue.ortvalue_from_numpy(a) for a in (x, y)]
        binding.bind_ortvalue_input("x", bound[0])
        binding.bind_ortvalue_output("y", bound[1])
        kept = None
        if verb == "winners":
            i = aligned(y.shape, "i8")
            bound.append(onnxruntime.OrtValue.ortvalue_from_numpy(i))
            binding.bind_ortvalue_output("i", bound[2])
            kept = i.nbytes
        return [Candidate("", calls(lambda: session.run_with_iobinding(binding)),
                          lambda: [bound[1].numpy().reshape(problem.out_shape)], keep=(x, y, bound), bytes_kept=kept)]
