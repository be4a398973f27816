#!/usr/bin/env python3
"""Record what PyTorch's graph executor does with scripted functions, for tests/data/graph_executor.

Needs PyTorch (2.11 made the recording in the checkout; any that still has the specialising executor will do), on the
CPU. For every function: its graph as a text of step/compiled/ir, the differentiable graphs of the plan for its first call
(operators inside, what is captured), how many plans there are after each of a sequence of calls, and how many plans
their gradients have after each of a sequence of backwards.

    tools/record/record_graph_executor.py [NAME ...] --out tests/data/graph_executor/recorded.json
"""
import argparse
import json
import sys
import types
from typing import List

import torch
import torch.nn.functional as F

Tensor = torch.Tensor

# --- The functions. Their arguments stand in ARGUMENTS: sizes with "g" for requires grad.


def chain(x: Tensor, y: Tensor):
    return torch.sigmoid(torch.tanh(x * y) + x) * y


def two_relus(x: Tensor):
    return torch.relu(torch.neg(torch.relu(x)))


def one_product(x: Tensor, y: Tensor):
    return x * y


def two_products(x: Tensor, y: Tensor):
    return x * y * y


def three_functions(x: Tensor):
    return torch.exp(torch.sin(torch.cos(x)))


def five_functions(x: Tensor):
    return torch.exp(torch.sin(torch.cos(torch.tanh(torch.sigmoid(x)))))


def six_functions(x: Tensor):
    return torch.exp(torch.sin(torch.cos(torch.tanh(torch.sigmoid(torch.neg(x))))))


def broadcast(x: Tensor, b: Tensor, s: Tensor):
    return torch.exp((x + b) * s)


def polynomial(x: Tensor):
    return x * x * x + x * x * 2.0 + x * 3.0 + 1.0


def mlp(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor):
    return F.linear(torch.relu(F.linear(x, w1, b1)), w2, b2)


def mlp_gelu(x: Tensor, w1: Tensor, w2: Tensor):
    return F.linear(F.gelu(F.linear(x, w1)), w2)


def mlp_loss(x: Tensor, w1: Tensor, b1: Tensor, t: Tensor):
    y = torch.log_softmax(F.linear(x, w1, b1), 1)
    return torch.mean(y * t)


def products(x: Tensor, w: Tensor, b: Tensor):
    return torch.mm(torch.relu(torch.addmm(b, x, w)), w.t())


def lstm_cell(x: Tensor, h: Tensor, c: Tensor, wi: Tensor, wh: Tensor, bi: Tensor, bh: Tensor):
    gates = torch.mm(x, wi.t()) + bi + torch.mm(h, wh.t()) + bh
    i, f, g, o = gates.chunk(4, 1)
    c2 = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h2 = torch.sigmoid(o) * torch.tanh(c2)
    return h2, c2


def lstm(x: Tensor, h: Tensor, c: Tensor, wi: Tensor, wh: Tensor, bi: Tensor, bh: Tensor, n: int):
    for t in range(n):
        gates = F.linear(x[t], wi, bi)
        if t > 0:  # the first state is zeros
            gates = gates + F.linear(h, wh, bh)
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return h, c


def attention(q: Tensor, k: Tensor, v: Tensor):
    scores = torch.matmul(q, k.transpose(1, 2)) * 0.5
    return torch.matmul(torch.softmax(scores, 2), v)


def attention_bmm(q: Tensor, k: Tensor, v: Tensor):
    return torch.bmm(torch.softmax(torch.bmm(q, k) / 2.0, 2), v)


def loop(x: Tensor, w: Tensor, n: int):
    for i in range(n):
        x = torch.tanh(x * w) + x
    return x


def small_loop(x: Tensor, w: Tensor):
    for i in range(3):
        x = torch.tanh(x * w)
    return x


def branch(x: Tensor, w: Tensor, n: int):
    if n > 2:
        y = torch.sigmoid(x * w)
    else:
        y = torch.tanh(x + w)
    return y * w


def nested_branch(x: Tensor, w: Tensor, n: int):
    y = x
    if n > 0:
        if n > 5:
            y = torch.relu(y * w)
        else:
            y = torch.exp(torch.neg(y))
    return torch.sigmoid(y * 2.0) * w


def concatenation(x: Tensor, y: Tensor):
    return torch.exp(torch.cat([torch.tanh(x), y], 0))


def stack_of_two(x: Tensor, y: Tensor):
    return torch.sigmoid(torch.stack([x, y], 0)) * 2.0


def split_of_two(x: Tensor):
    a, b = torch.tanh(torch.exp(x)).split([1, 2], 0)
    return torch.sigmoid(a), b


def cut_by_detach(x: Tensor, y: Tensor):
    z = torch.tanh(x * y)
    return torch.sigmoid(z.detach() * x) + z


def dropout(x: Tensor, w: Tensor):
    return torch.tanh(torch.dropout(x * w, 0.5, True)) * w


def dropout_in_evaluation(x: Tensor, w: Tensor):
    return torch.tanh(torch.dropout(x * w, 0.5, False)) * w


def unused_output(x: Tensor, y: Tensor):
    return torch.tanh(x * y), torch.sigmoid(x + y)


def shared_input(x: Tensor):
    a = torch.sigmoid(x)
    return a * a, torch.tanh(a)


def normalised(x: Tensor, w: Tensor, b: Tensor):
    return torch.relu(torch.layer_norm(x, [4], w, b)) * 2.0


def with_convolution(x: Tensor, w: Tensor):
    y = torch.conv2d(torch.relu(x * 2.0), w)
    return torch.tanh(torch.relu(y)) * 0.5


def clamped(x: Tensor, y: Tensor):
    return torch.clamp(x * y, -0.5, 0.5) / (y + 3.0)


def selected(x: Tensor, y: Tensor):
    return torch.where(x > 0.0, x * y, torch.exp(y))


def reduced(x: Tensor):
    return torch.exp(torch.mean(torch.tanh(x) * x, [1]))


def in_place(x: Tensor, y: Tensor):
    z = torch.tanh(x * y)
    z.add_(1.0)
    return torch.sigmoid(z) * y


# What a user's function may look like that is none of those above.


def number_of_index(x: Tensor, n: int):
    for i in range(n):
        x = torch.tanh(x) * float(i + 1)
    return x


def bool_of_tensor(x: Tensor, y: Tensor):
    if bool(x.sum() > 0.0):
        z = torch.sigmoid(x * y)
    else:
        z = torch.tanh(x + y)
    return z * y


def appended(x: Tensor, w: Tensor, n: int):
    parts: List[Tensor] = []
    for i in range(n):
        x = torch.tanh(x * w)
        parts.append(x)
    return torch.cat(parts, 0)


def without_gradients(x: Tensor, y: Tensor):
    with torch.no_grad():
        m = torch.sigmoid(x * y)
    return torch.tanh(x * m) * y


def called_layer_norm(x: Tensor, w: Tensor, b: Tensor):
    return torch.relu(F.layer_norm(x, [4], w, b)) * 2.0


def called_average(x: Tensor):
    return torch.tanh(F.avg_pool2d(torch.relu(x), 2)) * 0.5


def called_softmax(x: Tensor, w: Tensor):
    return F.softmax(x * w, dim=1) * w


def added_product(x: Tensor, w: Tensor, b: Tensor):
    return torch.tanh(torch.addmm(b, torch.relu(x), w)) * 2.0


def two_added_products(x: Tensor, w: Tensor, b: Tensor, v: Tensor, c: Tensor):
    return torch.addmm(c, torch.sigmoid(torch.addmm(b, x, w)), v)


def other_type(x: Tensor, y: Tensor):
    z = torch.tanh(x * y)
    return torch.sigmoid(z.type_as(y) * y) + z.to(torch.float32)


def clamped_where(x: Tensor, y: Tensor):
    z = torch.where(x > 0.0, x * y, torch.exp(y))
    return torch.clamp(z, 0.0, 1.0).sum(1) * 2.0


def softmax_of_scores(q: Tensor, k: Tensor):
    return torch.log_softmax(torch.matmul(q, k) * 0.5, 1)


def many_sides(x: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor):
    return torch.tanh(torch.mm(x, a)) + torch.mm(x, b) * torch.mm(x, c) + torch.sigmoid(torch.mm(x, d)) + torch.mm(x, e)


def batched_sum(x: Tensor, a: Tensor, b: Tensor):
    return torch.tanh(torch.baddbmm(x, a, b)) * x


def powers(x: Tensor, y: Tensor):
    return torch.pow(x, 2) * y + torch.sqrt(torch.abs(y) + 1.0)


def extremes(x: Tensor, y: Tensor):
    return torch.max(torch.tanh(x), y) - torch.min(x, torch.sigmoid(y))


def gated(x: Tensor, w: Tensor, v: Tensor):
    return F.silu(torch.mm(x, w)) * torch.mm(x, v)


def nested_loops(x: Tensor, w: Tensor, n: int):
    for i in range(n):
        for j in range(i):
            x = torch.tanh(x * w) + x
    return x


def turned(x: Tensor, y: Tensor):
    return torch.matmul(x.t().contiguous(), torch.relu(y)).transpose(0, 1) * 0.5


def interpolated(x: Tensor, y: Tensor, s: Tensor):
    return torch.lerp(torch.tanh(x), y, 0.3) * s + torch.addcmul(x, y, s)


def reversed_difference(x: Tensor, y: Tensor):
    return (1.0 - torch.sigmoid(x)) * (2.0 / (y * y + 1.0))


FUNCTIONS = {
    chain: "3,4 g; 3,4 g",
    two_relus: "3,4 g",
    one_product: "3,4 g; 3,4 g",
    two_products: "3,4 g; 3,4 g",
    three_functions: "3,4 g",
    five_functions: "3,4 g",
    six_functions: "3,4 g",
    broadcast: "3,4 g; 4 g; g",
    polynomial: "3,4 g",
    mlp: "5,3; 4,3 g; 4 g; 2,4 g; 2 g",
    mlp_gelu: "5,3; 4,3 g; 2,4 g",
    mlp_loss: "5,3; 4,3 g; 4 g; 5,4",
    products: "5,3 g; 3,4 g; 4 g",
    lstm_cell: "2,3; 2,5 g; 2,5 g; 20,3 g; 20,5 g; 20 g; 20 g",
    lstm: "4,2,3 g; 2,5 g; 2,5 g; 20,3 g; 20,5 g; 20 g; 20 g; int 4",
    attention: "2,3,4 g; 2,5,4 g; 2,5,6 g",
    attention_bmm: "2,3,4 g; 2,4,5 g; 2,5,6 g",
    loop: "3,4 g; 3,4 g; int 5",
    small_loop: "3,4 g; 3,4 g",
    branch: "3,4 g; 3,4 g; int 3",
    nested_branch: "3,4 g; 3,4 g; int 7",
    concatenation: "2,3 g; 4,3 g",
    stack_of_two: "2,3 g; 2,3 g",
    split_of_two: "3,4 g",
    cut_by_detach: "3,4 g; 3,4 g",
    dropout: "3,4 g; 3,4 g",
    dropout_in_evaluation: "3,4 g; 3,4 g",
    unused_output: "3,4 g; 3,4 g",
    shared_input: "3,4 g",
    normalised: "3,4 g; 4 g; 4 g",
    with_convolution: "1,2,5,5 g; 3,2,3,3 g",
    clamped: "3,4 g; 3,4 g",
    selected: "3,4 g; 3,4 g",
    reduced: "3,4 g",
    in_place: "3,4 g; 3,4 g",
    number_of_index: "3,4 g; int 4",
    bool_of_tensor: "3,4 g; 3,4 g",
    appended: "3,4 g; 3,4 g; int 4",
    without_gradients: "3,4 g; 3,4 g",
    called_layer_norm: "3,4 g; 4 g; 4 g",
    called_average: "1,2,4,4 g",
    called_softmax: "3,4 g; 3,4 g",
    added_product: "5,3 g; 3,4 g; 4 g",
    two_added_products: "5,3; 3,4 g; 4 g; 4,2 g; 2 g",
    other_type: "3,4 g; 3,4 g",
    clamped_where: "3,4 g; 3,4 g",
    softmax_of_scores: "3,4 g; 4,5 g",
    many_sides: "5,3; 3,4 g; 3,4 g; 3,4 g; 3,4 g; 3,4 g",
    batched_sum: "2,3,5 g; 2,3,4 g; 2,4,5 g",
    powers: "3,4 g; 3,4 g",
    extremes: "3,4 g; 3,4 g",
    gated: "5,3 g; 3,4 g; 3,4 g",
    nested_loops: "3,4 g; 3,4 g; int 3",
    turned: "3,4 g; 3,5 g",
    interpolated: "3,4 g; 3,4 g; 3,4 g",
    reversed_difference: "3,4 g; 3,4 g",
}


def parse(arguments):
    parsed = []
    for one in arguments.split(";"):
        words = one.split()
        if words and words[0] == "int":
            parsed.append({"int": int(words[1])})
            continue
        sizes = [int(size) for size in words[0].split(",")] if words and words[0] != "g" else []
        parsed.append({"sizes": sizes, "dtype": "f32", "grad": "g" in words})
    return parsed


def calls(arguments):
    """What is called one after the other: each changes something of the first call. Calls that a function does not
    allow (a product of tensors of three dimensions) are left out."""
    def changed(**changes):
        return [dict(one, **changes) if "sizes" in one else one for one in arguments]

    first_tensor = next(i for i, one in enumerate(arguments) if "sizes" in one)

    def first_changed(**changes):
        return [dict(one, **changes) if i == first_tensor else one for i, one in enumerate(arguments)]

    def resized(change):
        return [dict(one, sizes=change(one["sizes"])) if "sizes" in one else one for one in arguments]

    yield "first", arguments, True
    yield "same", arguments, True
    yield "other sizes", resized(lambda sizes: [2 * size for size in sizes]), True
    yield "a dimension more", resized(lambda sizes: [1] + sizes), True
    first_sizes = [1] + arguments[first_tensor]["sizes"]
    yield "the first argument has a dimension more", first_changed(sizes=first_sizes), True
    yield "f64", changed(dtype="f64"), True
    yield "no argument requires grad", changed(grad=False), True
    yield "no grad mode", arguments, False
    yield "first again", arguments, True
    yield "first argument does not require grad", first_changed(grad=False), True
    yield "no grad mode, none requires grad", changed(grad=False), False


def is_allowed(function, arguments):
    try:
        function(*[make(one) for one in arguments])
        return True
    except (RuntimeError, IndexError, ValueError):
        return False


def make(one):
    if "int" in one:
        return one["int"]
    dtype = {"f32": torch.float32, "f64": torch.float64}[one["dtype"]]
    tensor = torch.rand(one["sizes"], dtype=dtype)
    return tensor.requires_grad_(one["grad"])


# --- TorchScript's graph as a text of step/compiled/ir.

def constant_text(node):
    value = node.output().toIValue()
    if value is None or isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return '"' + value + '"'
    if isinstance(value, list):
        return "[" + ", ".join(repr(one) for one in value) + "]"
    raise ValueError(f"a constant of type {type(value)}")


def type_text(type_):
    text = str(type_)
    known = {"Tensor": "Tensor", "int": "int", "bool": "bool", "float": "float", "List[Tensor]": "Tensor[]",
             "Tensor[]": "Tensor[]", "int[]": "int[]", "List[int]": "int[]", "NoneType": "None"}
    return known.get(text, "Any")


class Writer:
    def __init__(self):
        self.lines = []
        self.names = {}

    def name(self, value):
        return self.names.setdefault(value.debugName(), "%v" + str(len(self.names)))

    def value(self, value):
        if value.node().kind() == "prim::Constant":
            return constant_text(value.node())
        return self.name(value)

    def block(self, block, indent):
        for node in block.nodes():
            self.node(node, indent)
        outputs = [one for output in block.returnNode().inputs() for one in self.flat(output)]
        self.lines.append(indent + "-> (" + ", ".join(self.value(one) for one in outputs) + ")")

    @staticmethod
    def flat(value):
        if value.node().kind() == "prim::TupleConstruct":
            return list(value.node().inputs())
        return [value]

    def node(self, node, indent):
        kind = node.kind()
        if kind in ("prim::Constant", "prim::TupleConstruct"):
            return
        outputs = list(node.outputs())
        made = ", ".join(f"{self.name(one)}: {type_text(one.type())}" for one in outputs)
        inputs = ", ".join(self.value(one) for one in node.inputs())
        if kind in ("prim::If", "prim::Loop"):
            text = f"{made} = {kind}({inputs})"
            for block in node.blocks():
                parameters = ", ".join(f"{self.name(one)}: {type_text(one.type())}" for one in block.inputs())
                self.lines.append(indent + text + (" { (" + parameters + ")" if parameters else " {"))
                self.block(block, indent + "  ")
                text = "}"
            self.lines.append(indent + "}")
            return
        name = kind
        if kind.startswith("aten::"):
            schema = torch._C.parse_schema(node.schema())
            name = schema.name + ("." + schema.overload_name if schema.overload_name else "")
        self.lines.append(f"{indent}{made} = {name}({inputs})")

    def graph(self, graph):
        inputs = ", ".join(f"{self.name(one)}: {type_text(one.type())}" for one in graph.inputs())
        self.lines.append(f"graph({inputs}) {{")
        self.block(graph.block(), "  ")
        self.lines.append("}")
        return "\n".join(self.lines) + "\n"


# --- What the executor did.

def subgraphs(block, found):
    for node in block.nodes():
        if node.kind() == "prim::DifferentiableGraph":
            found.append(node.g("Subgraph"))
        for inner in node.blocks():
            subgraphs(inner, found)


def operators(block):
    names = []
    for node in block.nodes():
        if node.kind() == "prim::FusionGroup":
            names += operators(node.g("Subgraph"))
        elif node.kind() != "prim::Constant":
            names.append(node.kind())
        for inner in node.blocks():
            names += operators(inner)
    return names


def differentiable(graph):
    found = []
    subgraphs(graph, found)
    return found


def scripted_anew(function):
    """With an executor that nobody has used: torch.jit.script keeps what it made of a function."""
    again = types.FunctionType(function.__code__, function.__globals__, function.__name__)
    again.__annotations__ = function.__annotations__
    return torch.jit.script(again)


def record(function, arguments):
    scripted = torch.jit.script(function)
    inlined = scripted.inlined_graph
    torch._C._jit_pass_constant_propagation(inlined)  # what functions of torch.nn ask of their arguments, as the executor does
    described = parse(arguments)
    storages, counted = {}, [0]

    def pack(tensor):
        counted[0] += 1
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    result = {"name": function.__name__, "arguments": described, "graph": Writer().graph(inlined), "calls": []}
    keep = []
    for label, values, gradients in calls(described):
        if not is_allowed(function, values):
            continue
        with torch.set_grad_enabled(gradients):
            made = [make(one) for one in values]
            if label == "first":
                with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                    outputs = scripted(*made)
                keep.append(outputs)
                result["saved_tensors"], result["saved_bytes"] = counted[0], sum(storages.values())
            else:
                scripted(*made)
        state = scripted.get_debug_state()
        plans = list(state.execution_plans.values())
        result["calls"].append({"call": label, "arguments": values, "grad_mode": gradients, "plans": len(plans)})
        if label == "first":
            result["graphs"] = []
            for graph in differentiable(plans[0].graph):
                result["graphs"].append(operators(graph))
            result["outside"] = [name for name in operators(plans[0].graph) if name != "prim::DifferentiableGraph"]
    result["backwards"] = backwards(function, described)
    return result


def backwards(function, arguments):
    """Backwards of the first call, one after the other: from which outputs, whether they are recorded, and how many
    plans the gradients have then, each through an executor of its own."""
    scripted = scripted_anew(function)
    found = []

    def run(label, select, create_graph):
        made = [make(one) for one in arguments]
        outputs = scripted(*made)
        outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
        roots = [one for one in select(outputs) if one.requires_grad]
        leaves = [one for one in made if isinstance(one, Tensor) and one.requires_grad]
        if not roots:
            return
        try:
            torch.autograd.grad(roots, leaves, [torch.ones_like(one) for one in roots], allow_unused=True,
                                create_graph=create_graph)
        except RuntimeError as error:  # 2.11 fails in some formulas where a gradient is undefined
            found.append({"from": label, "create_graph": create_graph, "error": str(error).splitlines()[-1]})
            return
        plan, = scripted.get_debug_state().execution_plans.values()
        plans = [len(state.execution_plans) for state in plan.code.grad_executor_states()]
        found.append({"from": label, "create_graph": create_graph, "plans": plans})

    run("all", lambda outputs: outputs, False)
    run("all", lambda outputs: outputs, False)
    run("first", lambda outputs: outputs[:1], False)
    run("last", lambda outputs: outputs[-1:], False)
    run("all", lambda outputs: outputs, True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="functions; without any, all. Others keep what was recorded before")
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    torch._C._jit_set_profiling_executor(False)
    torch._C._jit_set_profiling_mode(False)
    known = {}
    if options.names:
        with open(options.out) as file:
            known = {function["name"]: function for function in json.load(file)["functions"]}
    functions = [
        record(f, a) if not options.names or f.__name__ in options.names else known[f.__name__] for f, a in FUNCTIONS.items()
    ]
    recorded = {"torch": torch.__version__, "functions": functions}
    with open(options.out, "w") as file:
        json.dump(recorded, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
