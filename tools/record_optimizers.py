"""What steps of torch.optim take, with each of their options: the figures of tests/data/optimizers/steps.json.

    metaprof run --device h200 -- python tools/record_optimizers.py FILE

For every word of `--optimizer` that has options, and for every implementation: how many bytes each of three steps has added
when it is over, and at its peak. The model is that of tests/data/optimizers/mlp.mp.
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
    "rmsprop": (optim.RMSprop, {}, ("maximize", "wd")),
    "rmsprop-momentum": (optim.RMSprop, {**DECAY, "momentum": 0.9, "centered": True}, ("maximize",)),
    "adagrad": (optim.Adagrad, {}, ("maximize", "wd")),
    "adadelta": (optim.Adadelta, {}, ("maximize", "wd")),
    "adamax": (optim.Adamax, {}, ("maximize", "wd")),
    "nadam": (optim.NAdam, {}, ("decoupled", "maximize", "wd")),
    "radam": (optim.RAdam, {}, ("decoupled", "maximize", "wd")),
    "rprop": (optim.Rprop, {}, ("maximize",)),
    "asgd": (optim.ASGD, {}, ("maximize", "wd")),
}
ARGUMENTS = {"wd": DECAY, "decoupled": {"decoupled_weight_decay": True}}
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
    optimizer = make(model.parameters())
    rows = []
    for _ in range(3):
        model(x).backward()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        optimizer.step()
        rows.append([torch.cuda.memory_allocated() - before, torch.cuda.max_memory_allocated() - before])
        optimizer.zero_grad()
    return rows


def main():
    x = torch.rand(32, 300, device="cuda")
    found = {}
    for name, (kind, arguments, options) in OPTIMIZERS.items():
        for given in itertools.chain.from_iterable(itertools.combinations(options, n) for n in range(len(options) + 1)):
            settings = dict(arguments)
            for option in given:
                settings.update(ARGUMENTS.get(option, {option: True}))
            word = "-".join((name, *given))
            for implementation, switch in IMPLEMENTATIONS.items():
                if implementation == "fused" and kind not in (optim.SGD, optim.Adam, optim.AdamW):
                    continue
                if implementation == "for-loop" and kind is optim.ASGD:
                    continue  # it reads from the device whether averaging has begun, which is 0 here
                found.setdefault(word, {})[implementation] = steps(lambda p: kind(p, **settings, **switch), x)
                gc.collect()
    with open(sys.argv[1], "w") as file:
        rows = ",\n".join(f" {json.dumps(word)}: {json.dumps(of)}" for word, of in found.items())
        file.write(f'{{"torch": "{torch.__version__}", "device": "h200", "steps": {{\n{rows}\n}}}}\n')


if __name__ == "__main__":
    main()
