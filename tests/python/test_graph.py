"""Graphs: values and derivatives of whole programs, against PyTorch and against their own laws."""

import threading
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import cenote


def network(dtype):
    """A small network that has every kind of pooling in it."""
    g = cenote.Graph(dtype)
    x, w, v, b = g.input("x", (2, 1, 12, 12)), g.input("w", (4, 1, 3, 3)), g.input("v", (3, 12)), g.input("b", (3,))
    targets = g.input("targets", (2, 3))
    y = g.relu(g.conv(x, w, padding=1))
    pooled = [
        g.max_pool(y, (3, 3), 2, 1),
        g.avg_pool(y, (2, 2)),
        g.smooth_max_pool(y, (2, 2), beta=2.0),
    ]
    features = g.concatenate([g.global_avg_pool(each, spatial_dims=2, keepdims=False) for each in pooled], 1)
    g.output("loss", g.softmax_cross_entropy(g.linear(features, v, b), targets))
    g.output("features", features)
    return g


def arrays_of(random, dtype, without=()):
    shapes = {"x": (2, 1, 12, 12), "w": (4, 1, 3, 3), "v": (3, 12), "b": (3,)}
    arrays = {name: random.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}
    arrays["targets"] = np.eye(3, dtype=dtype)[[0, 2]]
    return {name: array for name, array in arrays.items() if name not in without}


def test_a_network_has_the_values_and_gradients_that_torch_gives(random):
    torch = pytest.importorskip("torch")
    F = torch.nn.functional
    arrays = arrays_of(random, np.float64)
    t = {name: torch.from_numpy(array).requires_grad_() for name, array in arrays.items()}
    y = F.relu(F.conv2d(t["x"], t["w"], padding=1))
    smooth = torch.logsumexp(2 * F.unfold(y, 2, stride=2).reshape(2, 4, 4, 6, 6), 2) / 2
    pooled = [F.max_pool2d(y, 3, 2, 1), F.avg_pool2d(y, 2), smooth]
    features = torch.cat([each.mean((2, 3)) for each in pooled], 1)
    loss = F.cross_entropy(F.linear(features, t["v"], t["b"]), t["targets"])
    gradients = torch.autograd.grad(loss, [t[name] for name in ("x", "w", "v", "b")])

    program = network("float64").program()
    values, ours = program.value_and_vjp(arrays, {"loss": np.ones(())})
    np.testing.assert_allclose(values["loss"], loss.item(), rtol=1e-12)
    np.testing.assert_allclose(values["features"], features.detach().numpy(), rtol=1e-12)
    for name, gradient in zip(("x", "w", "v", "b"), gradients):
        np.testing.assert_allclose(ours[name], gradient.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tangents_and_gradients_are_adjoint(dtype, random):
    g = network(dtype)
    arrays, tangents = arrays_of(random, dtype), arrays_of(random, dtype)
    values, pushed = g.jvp(arrays, tangents)
    gy = {name: random.standard_normal(value.shape).astype(dtype) for name, value in values.items()}
    pulled = g.vjp(arrays, gy)
    left = sum((pushed[name].astype(float) * gy[name]).sum() for name in gy)
    right = sum((pulled[name].astype(float) * tangents[name]).sum() for name in tangents)
    np.testing.assert_allclose(left, right, rtol=1e-10 if dtype == "float64" else 1e-3)
    assert all(array.dtype == dtype for array in [*values.values(), *pushed.values(), *pulled.values()])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_linear_map_gives_what_jvp_and_vjp_give_as_often_as_it_is_asked(dtype, random):
    program = network(dtype).program()
    arrays = arrays_of(random, dtype)
    at = program.linearize(arrays)
    for _ in range(2):
        tangents = arrays_of(random, dtype)
        values, pushed = program.jvp(arrays, tangents)
        gy = {name: random.standard_normal(value.shape).astype(dtype) for name, value in values.items()}
        same([(at.value, values), (at.push(tangents), pushed), (at.pull(gy), program.vjp(arrays, gy))])


def same(pairs):
    for ours, expected in pairs:
        assert list(ours) == list(expected)
        assert all(ours[name].tobytes() == expected[name].tobytes() for name in ours)


def test_a_linear_map_stays_what_it_was(random):
    g = cenote.Graph("float64")
    x = g.input("x", (3,))
    g.output("y", g.sum(x * x))
    program, point = g.program(), np.array([1.0, 2, 3])
    at = program.linearize([point])
    point[:] = 7  # the caller's own array
    program.evaluate([point])  # another run of the program
    del program, g
    np.testing.assert_array_equal(at.pull()["x"], [2, 4, 6])
    np.testing.assert_array_equal(at.push([np.ones(3)])["y"], 12)


def test_threads_may_share_a_linear_map(random):
    arrays = arrays_of(random, np.float64)
    at = network("float64").linearize(arrays)
    gy = [{"features": random.standard_normal((2, 12))} for _ in range(4)]
    expected = [at.pull(each)["w"].tobytes() for each in gy]
    failures = []

    def work(i):
        failures.extend(i for _ in range(50) if at.pull(gy[i])["w"].tobytes() != expected[i])

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_hessian_vector_products_are_those_of_torch(random):
    torch = pytest.importorskip("torch")
    x, w, dx, dw = (random.standard_normal(shape) for shape in 2 * ((1, 6, 6), (2, 1, 3, 3)))

    g = cenote.Graph("float64")
    a, b = g.input("x", x.shape), g.input("w", w.shape)
    smooth = g.smooth_max_pool(g.tanh(g.conv(a, b, padding=1)), (2, 2), beta=2.0)
    g.output("y", g.mean(g.max_pool(smooth, (2, 2), 1) * g.constant(np.full((2, 2, 2), 3.0)) * 2 + g.avg_pool(smooth, (2, 2), 1)))

    def f(x, w):
        y = torch.tanh(torch.nn.functional.conv2d(x[None], w, padding=1))
        y = torch.logsumexp(2 * torch.nn.functional.unfold(y, 2, stride=2).reshape(1, 2, 4, 3, 3), 2) / 2
        F = torch.nn.functional
        return (F.max_pool2d(y, 2, 1) * 6 + F.avg_pool2d(y, 2, 1)).mean()

    at, direction = tuple(map(torch.from_numpy, (x, w))), tuple(map(torch.from_numpy, (dx, dw)))
    value, product = torch.autograd.functional.hvp(f, at, direction)
    values, gradients, products = g.hessian_vector_product({"x": x, "w": w}, {"x": dx, "w": dw})
    np.testing.assert_allclose(values["y"], value, rtol=1e-12)
    for name, expected in zip(("x", "w"), product):
        np.testing.assert_allclose(products[name], expected, rtol=1e-9, atol=1e-12)
    for name, gradient in g.vjp([x, w]).items():
        np.testing.assert_allclose(gradients[name], gradient, rtol=1e-12)


def test_hessian_vector_products_by_some_inputs_and_of_several_outputs(random):
    g = cenote.Graph("float32")
    nodes = g.input("x", (2,)), g.input("w", (2,))
    g.output("y", nodes[0] * nodes[0] * nodes[1])
    g.output("z", nodes[1] * nodes[1])
    x, w = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    one = np.ones(2, np.float32)
    # By w alone x does not move; z is left out, so its gradient is 0.
    _, gradients, products = g.program(by=[nodes[1]]).hessian_vector_product([x, w], [one], {"z": 10 * one})
    assert list(gradients) == list(products) == ["w"]
    np.testing.assert_array_equal(gradients["w"], 20 * w)
    np.testing.assert_array_equal(products["w"], 20 * one)
    products = g.hessian_vector_product([x, w], {"x": one}, {"y": one})[2]
    np.testing.assert_array_equal(products["x"], 2 * w)
    np.testing.assert_array_equal(products["w"], 2 * x)


def test_arrays_are_given_by_name_or_in_order(random):
    g = network("float64")
    arrays = arrays_of(random, np.float64)
    by_name, in_order = g.evaluate(dict(reversed(arrays.items()))), g.evaluate(list(arrays.values()))
    assert list(by_name) == list(in_order) == ["loss", "features"]
    assert all(by_name[name].tobytes() == in_order[name].tobytes() for name in by_name)


def test_what_a_dict_leaves_out_of_tangents_is_zero(random):
    g = network("float64")
    arrays = arrays_of(random, np.float64)
    tangents = {name: np.zeros_like(array) for name, array in arrays.items()}
    tangents["w"] = arrays["w"]
    assert g.jvp(arrays, {"w": arrays["w"]})[1]["loss"] == g.jvp(arrays, tangents)[1]["loss"]


def test_gradients_by_some_inputs_only(random):
    g = cenote.Graph("float64")
    x, w = g.input("x", (2, 3)), g.input("w", (4, 3))
    g.output("y", g.mean(g.linear(x, w)))
    arrays = [random.standard_normal((2, 3)), random.standard_normal((4, 3))]
    assert list(g.program(by=[w]).vjp(arrays)) == ["w"]
    np.testing.assert_allclose(g.program(by=[w]).vjp(arrays)["w"], np.tile(arrays[0].sum(0) / 8, (4, 1)))


def test_nodes_combine_like_numbers(random):
    g = cenote.Graph("float64")
    a, b = g.input("a", (3, 3)), g.input("b", (3, 3))
    g.output("y", g.tanh(2 * a + b * 0.5 - a * b) @ -b)
    x = {"a": random.standard_normal((3, 3)), "b": random.standard_normal((3, 3))}
    expected = np.tanh(2 * x["a"] + x["b"] * 0.5 - x["a"] * x["b"]) @ -x["b"]
    np.testing.assert_allclose(g.evaluate(x)["y"], expected, rtol=1e-13)


def test_every_pooling_method_is_the_function_of_that_name(random):
    x = random.standard_normal((2, 6, 6))
    calls = {
        "max_pool": ((2, 2),), "min_pool": ((2, 2),), "avg_pool": ((2, 2),), "sum_pool": ((2, 2),),
        "adaptive_max_pool": ((4, 4),), "adaptive_avg_pool": ((4, 4),), "global_max_pool": (), "global_avg_pool": (),
        "smooth_max_pool": ((2, 2),), "adaptive_smooth_max_pool": ((4, 4),), "global_smooth_max_pool": (), "lp_pool": ((2, 2),),
    }
    for name, arguments in calls.items():
        options = {"spatial_dims": 2} if name.startswith("global") else {}
        options |= {"beta": 1.0} if "smooth" in name else {"p": 3} if name.startswith("lp") else {}
        g = cenote.Graph("float64")
        g.output("y", getattr(g, name)(g.input("x", x.shape), *arguments, **options))
        assert g.evaluate([x])["y"].tobytes() == getattr(cenote, name)(x, *arguments, **options).tobytes(), name
        gy = np.ones(g.evaluate([x])["y"].shape)
        np.testing.assert_allclose(
            g.vjp([x], [gy])["x"], getattr(cenote, f"{name}_vjp")(x, gy, *arguments, **options), rtol=1e-13, atol=1e-15
        )


def test_constants_detached_nodes_and_shapes(random):
    g = cenote.Graph("float64")
    x = g.input("x", (2, 3, 4))
    weight = random.standard_normal((2, 12))
    y = g.flatten(x) * g.constant(weight) + g.reshape(g.detach(g.exp(x)), (2, 12))
    assert y.shape == (2, 12) and len(g) == 8
    g.output("y", g.sum(y))
    at = random.standard_normal((2, 3, 4))
    np.testing.assert_allclose(g.evaluate([at])["y"], (at.reshape(2, 12) * weight).sum() + np.exp(at).sum())
    np.testing.assert_allclose(g.vjp([at])["x"], weight.reshape(2, 3, 4))


def test_a_program_outlives_its_graph_and_runs_on_many_threads(random):
    program = network("float32").program()
    arrays = [arrays_of(random, np.float32) for _ in range(6)]
    expected = [program.vjp(a, {"loss": np.float32(1)})["w"].tobytes() for a in arrays]
    failures = []

    def work(i):
        for _ in range(50):
            if program.vjp(arrays[i], {"loss": np.float32(1)})["w"].tobytes() != expected[i]:
                failures.append(i)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_results_are_the_callers(random):
    program = network("float64").program()
    first = program.evaluate(arrays_of(random, np.float64))["features"]
    kept = first.tobytes()
    program.evaluate(arrays_of(random, np.float64))
    assert first.tobytes() == kept


def test_a_graph_prints_a_table_and_a_picture():
    g = network("float32")
    assert "max_pool" in str(g) and "sliding 3x3 stride 2 padding 1" in str(g)
    assert "memory: evaluate" in str(g.program())
    assert set(g.program().peak_memory()) == {"evaluate", "jvp", "vjp", "linearize"}
    for thing in (g, g.program()):
        assert ElementTree.fromstring(thing._repr_svg_()).tag.endswith("svg")


def unfinished():
    g = cenote.Graph("float32")
    return g, g.input("x", (2, 3))


X = np.zeros((2, 3), np.float32)


def runnable():
    g, x = unfinished()
    g.output("y", g.relu(x))
    return g


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: cenote.Graph("int32"), TypeError, "Graph: dtype is 'int32'; it must be float32 or float64"),
        (lambda: unfinished()[0].relu(3), TypeError, "relu: x is 3; it must be a node of this graph"),
        (lambda: unfinished()[0].relu(unfinished()[1]), ValueError, "relu: x is a node of another graph"),
        (lambda: (lambda g, x: g.matmul(x, x))(*unfinished()), ValueError, "matmul: b has size 2 on axis 0; expected 3"),
        (lambda: (lambda g, x: g.max_pool(x, (3, 3)))(*unfinished()), ValueError, "max_pool: kernel spans 3 cells on axis 0"),
        (lambda: (lambda g, x: g.max_pool(x, 2))(*unfinished()), ValueError, "max_pool: kernel is the single number 2"),
        (lambda: (lambda g, x: g.input("x", (1,)))(*unfinished()), ValueError, "input: name is `x`, a name that is taken"),
        (lambda: (lambda g, x: g.flatten(x, 5))(*unfinished()), ValueError, "flatten: start_axis names axis 5"),
        (lambda: (lambda g, x: g.reshape(x, (4,)))(*unfinished()), ValueError, "reshape: x has 6 elements; the shape needs 4"),
        (lambda: (lambda g, x: g.concatenate(x, 0))(*unfinished()), TypeError, "concatenate: xs is node 0 (2x3); it must be a sequence"),
        (lambda: (lambda g, x: g.program())(*unfinished()), ValueError, "outputs are missing"),
        (lambda: runnable().evaluate({}), ValueError, "evaluate: input `x` (2x3) is missing"),
        (lambda: runnable().evaluate([]), ValueError, "evaluate: input `x` (2x3) is missing"),
        (lambda: runnable().evaluate([X, X]), ValueError, "evaluate: inputs has 2 arrays; expected 1"),
        (lambda: runnable().evaluate({"z": X}), ValueError, "evaluate: inputs names 'z'; legal are `x` (2x3)"),
        (lambda: runnable().evaluate(X), TypeError, "it must be a dict of arrays by name, or a sequence of arrays in order"),
        (lambda: runnable().evaluate({"x": X[0]}), ValueError, "evaluate: inputs[x] has 1 axes; expected 2"),
        (lambda: runnable().evaluate({"x": X.astype(float)}), TypeError, "evaluate: inputs['x'] has dtype float64, but the graph has float32"),
        (lambda: runnable().vjp([X]), TypeError, "vjp: output_gradients is None; it must be given, unless the only output is one number"),
        (lambda: runnable().linearize([X]).pull(), TypeError, "pull: output_gradients is None; it must be given, unless"),
        (lambda: runnable().linearize([X]).push([X, X]), ValueError, "push: tangents has 2 arrays; expected 1"),
        (lambda: runnable().linearize([]), ValueError, "linearize: input `x` (2x3) is missing"),
        (lambda: runnable().hessian_vector_product([X], [X, X], [X]), ValueError, "direction has 2 arrays; expected 1"),
        (lambda: runnable().hessian_vector_product([X], [X[0]], [X]), ValueError, "hessian_vector_product: direction has 1 axes"),
        (lambda: runnable().jvp([X], [X, X]), ValueError, "jvp: tangents has 2 arrays; expected 1"),
    ],
)
def test_mistakes_are_refused_with_a_sentence(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)
