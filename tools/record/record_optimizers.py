"""What steps of torch.optim take, with each of their options: the figures of tests/data/optimizers/steps.json.

    metaprof run --device h200 -- python tools/record/record_optimizers.py FILE

For every word of `--optimizer` that has options, and for every implementation: how many bytes each of three steps has added
when it is over, and at its peak; and the bytes that the second step requests, one after the other, negative where they are
given back. The model is that of tests/data/optimizers/mlp.mp. The same of steps with `differentiable=True`, over two
parameters that are no leaves (tests/autograd/differentiable_optimizers_test.cpp).
"""
import gc
import itertools
import json
import sys

import torch
from torch import nn, optim

DECAY = {"weight_decay": 0.01}
# Word: class, arguments, options that it takes.
OPTIMIZERS = {
    "sgd": (optim.SGD, {}, ("maximize", "wd")),
    "sgd-momentum": (optim.SGD, {"momentum": 0.9}, ("maximize", "wd")),
    "sgd-nesterov": (optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 1e-4}, ("maximize",)),
    "adam": (optim.Adam, {}, ("amsgrad", "capturable", "maximize", "wd")),
    "adamw": (optim.AdamW, DECAY, ("amsgrad", "capturable", "maximize", "wd")),
    "rmsprop": (optim.RMSprop, {}, ("capturable", "maximize", "wd")),
    "rmsprop-momentum": (optim.RMSprop, {**DECAY, "momentum": 0.9, "centered": True}, ("capturable", "maximize")),
    "adagrad": (optim.Adagrad, {}, ("maximize", "wd")),
    "adadelta": (optim.Adadelta, {}, ("capturable", "maximize", "wd")),
    "adamax": (optim.Adamax, {}, ("capturable", "maximize", "wd")),
    "nadam": (optim.NAdam, {}, ("capturable", "decoupled", "maximize", "wd")),
    "radam": (optim.RAdam, {}, ("capturable", "decoupled", "maximize", "wd")),
    "rprop": (optim.Rprop, {}, ("capturable", "maximize")),
    "asgd": (optim.ASGD, {}, ("capturable", "maximize", "wd")),
    "adafactor": (optim.Adafactor, DECAY, ("maximize",)),
}
ARGUMENTS = {"wd": DECAY, "decoupled": {"decoupled_weight_decay": True}}
SIGNS = {"alloc": 1, "free_requested": -1}
IMPLEMENTATIONS = {"foreach": {"foreach": True}, "for-loop": {"foreach": False}, "fused": {"fused": True}}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(300, 700)
        self.b = nn.Linear(700, 50)

    def forward(self, x):
        return self.b(torch.relu(self.a(x))).sum()


def steps(make, x):
    model = Model().cuda()
    return rows_of(make(model.parameters()), lambda: model(x).backward())


def differentiable_steps(make):
    """Of parameters that are no leaves: leaves cannot be written to while a history is kept. Gradients are given."""
    leaves = [torch.rand(700, 300, device="cuda", requires_grad=True), torch.rand(50, device="cuda", requires_grad=True)]
    parameters = [leaf.clone() for leaf in leaves]

    def give_gradients():
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter, requires_grad=False)

    return rows_of(make(parameters), give_gradients)


def rows_of(optimizer, make_gradients):
    rows, requests = [], []
    for step in range(3):
        make_gradients()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        if step == 1:
            torch.cuda.memory._record_memory_history(max_entries=100000, context=None)
        optimizer.step()
        if step == 1:
            trace = torch.cuda.memory._snapshot()["device_traces"][0]
            requests = [SIGNS[event["action"]] * event["size"] for event in trace if event["action"] in SIGNS]
            torch.cuda.memory._record_memory_history(enabled=None)
        rows.append([torch.cuda.memory_allocated() - before, torch.cuda.max_memory_allocated() - before])
        optimizer.zero_grad()
    return rows, requests


def main():
    x = torch.rand(32, 300, device="cuda")
    found, sequences, differentiable = {}, {}, {}
    steps(lambda p: optim.SGD(p, lr=0.1), x)  # the recorder itself keeps requests of the first steps
    for name, (kind, arguments, options) in OPTIMIZERS.items():
        for given in itertools.chain.from_iterable(itertools.combinations(options, n) for n in range(len(options) + 1)):
            settings = dict(arguments)
            for option in given:
                settings.update(ARGUMENTS.get(option, {option: True}))
            word = "-".join((name, *given))
            for implementation, switch in IMPLEMENTATIONS.items():
                if implementation == "fused" and kind not in (optim.SGD, optim.Adam, optim.AdamW):
                    continue
                if implementation == "for-loop" and kind is optim.ASGD and "capturable" not in given:
                    continue  # it reads from the device whether averaging has begun, which is 0 here
                rows, requests = steps(lambda p: kind(p, **settings, **switch), x)
                found.setdefault(word, {})[implementation] = rows
                sequences.setdefault(word, {})[implementation] = requests
                gc.collect()
            if kind not in (optim.ASGD, optim.Adafactor) or kind is optim.ASGD and "capturable" in given:
                rows, requests = differentiable_steps(lambda p: kind(p, differentiable=True, **settings))
                differentiable[word] = {"steps": rows, "requests": requests}
                gc.collect()
    with open(sys.argv[1], "w") as file:
        tables = {"steps": found, "requests": sequences, "differentiable": differentiable}
        texts = {name: ",\n".join(f" {json.dumps(word)}: {json.dumps(of)}" for word, of in table.items()) for name, table in tables.items()}
        file.write(f'{{"torch": "{torch.__version__}", "device": "h200"')
        for name, text in texts.items():
            file.write(f',\n"{name}": {{\n{text}\n}}')
        file.write("}\n")


if __name__ == "__main__":
    main()
