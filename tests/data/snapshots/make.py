#!/usr/bin/env python3
"""make.py export|snapshot FILE: the model of these tests' snapshots, exported without weights, or two training steps
of it on a CUDA device and the framework's memory snapshot after them (PyTorch 2.11, an emulated H200). `late` as
third word: the history begins when model and inputs are on the device."""

import sys

import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(5000, 1024)
        self.up = torch.nn.Linear(1024, 4096)
        self.norm = torch.nn.LayerNorm(4096)
        self.head = torch.nn.Linear(4096, 1000)

    def forward(self, x, y):
        h = self.norm(torch.nn.functional.gelu(self.up(self.tokens(x))))
        return torch.nn.functional.cross_entropy(self.head(h).flatten(0, 1), y.flatten())


def inputs(device):
    return tuple(torch.zeros(64, 32, dtype=torch.long, device=device) for _ in range(2))


def export(file):
    with torch.device("meta"):
        model = Model()
    program = torch.export.export(model, inputs("meta"))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # paths of the machine
    torch.export.save(program, file)


def snapshot(file, late):
    if not late:
        torch.cuda.memory._record_memory_history(context=None)
    model = Model().cuda()
    x, y = (tensor.cuda() for tensor in inputs("cpu"))
    if late:
        torch.cuda.memory._record_memory_history(context=None)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        loss = model(x, y)
        loss.backward()
        del loss
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.memory._dump_snapshot(file)
    statistics = torch.cuda.memory_stats()
    for name in ("allocated_bytes", "requested_bytes", "reserved_bytes"):
        print(name, statistics[f"{name}.all.peak"])


if sys.argv[1] == "export":
    export(sys.argv[2])
else:
    snapshot(sys.argv[2], sys.argv[3:] == ["late"])
