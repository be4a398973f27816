#!/usr/bin/env python3
"""What the autograd graph of a model holds for backward after one forward, as `metaprof profile --json` lists it.

Needs PyTorch 2.11 and a CUDA device. MODULE:FUNCTION returns a module and the list of its inputs, on the CPU; the
module's forward returns the loss; ARGUMENTS are the function's. Prints, for fp32 and for bf16 autocast, the unique
storages without parameters and buffers, in all and by the node that a walk from the loss (last next function first)
meets first:

    measure_saved.py my_models:resnet18 > resnet18.saved.json

Saved tensors are looked at and never unpacked: unpacking what a checkpointed region saved computes it again. One model
a process: cuDNN's dropout state outlives a model, and every recurrent call saves it from then on.
"""
import argparse
import importlib
import json
import sys


def saved_storages(loss, known):
    """[(node, bytes)] of the unique storages on the device that the graph holds; `known`: addresses to leave out."""
    import torch
    seen, rows, stack, visited = set(known), [], [loss.grad_fn], set()
    while stack:
        node = stack.pop()
        if node is None or node in visited:
            continue
        visited.add(node)
        for name in dir(node):
            value = getattr(node, name) if name.startswith("_raw_saved_") else []
            for saved in value if isinstance(value, (list, tuple)) else [value]:
                tensor = saved.data  # with hooks: what they made of it
                if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided or not tensor.is_cuda:
                    continue
                storage = tensor.untyped_storage()
                if storage.data_ptr() and storage.data_ptr() not in seen:
                    seen.add(storage.data_ptr())
                    rows.append((node.name(), storage.nbytes()))
        stack.extend(node for node, _ in node.next_functions)
    return rows


def measure(make, precision):
    import torch
    module, inputs = make()
    module.cuda()
    inputs = [x.cuda() for x in inputs]
    known = {t.untyped_storage().data_ptr() for t in [*module.parameters(), *module.buffers()]}
    with torch.autocast("cuda", torch.bfloat16, enabled=precision == "amp-bf16"):
        loss = module(*inputs)
    rows = saved_storages(loss, known)
    nodes = {node: [b for n, b in rows if n == node] for node in sorted({node for node, _ in rows})}
    return {"count": len(rows), "bytes": sum(b for _, b in rows),
            "by_node": [{"node": node, "count": len(b), "bytes": sum(b)} for node, b in nodes.items()]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODULE:FUNCTION")
    parser.add_argument("arguments", nargs="*", metavar="ARGUMENT")
    options = parser.parse_args()
    module, _, function = options.model.partition(":")
    sys.path.insert(0, ".")
    make = getattr(importlib.import_module(module), function)
    print(json.dumps({precision: measure(lambda: make(*options.arguments), precision)
                      for precision in ("fp32", "amp-bf16")}, indent=1))


if __name__ == "__main__":
    main()
