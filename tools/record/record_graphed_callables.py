#!/usr/bin/env python3
"""Records torch.cuda.make_graphed_callables of a model: the allocator's statistics once the model is on the device, after the captures,
and after three training steps that replay them. Writes one line of JSON.

    PYTHONPATH=FOLDER python record_graphed_callables.py '{"model": "gpt2"}'

FOLDER holds record_model.py, the recorder of training steps, which builds the models. Runs on a GPU or on the emulated device."""
import json
import sys

import torch

import record_model


def stats():
    numbers, segments = torch.cuda.memory_stats(), {}
    for segment in torch.cuda.memory.memory_snapshot():
        pool = str(segment.get("segment_pool_id"))
        segments[pool] = segments.get(pool, 0) + segment["total_size"]
    return {
        "allocated": numbers["allocated_bytes.all.current"],
        "allocated_peak": numbers["allocated_bytes.all.peak"],
        "reserved": numbers["reserved_bytes.all.current"],
        "reserved_peak": numbers["reserved_bytes.all.peak"],
        "segments_by_pool": segments,
    }


def main():
    module, args = record_model.build(record_model.DEFAULTS | json.loads(sys.argv[1]), torch)
    module.cuda()
    args = tuple(a.cuda() for a in args)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    recorded = {"setup": stats()}
    graphed = torch.cuda.make_graphed_callables(module, args)
    recorded["captured"] = stats()
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        loss = graphed(*args)
        loss.backward()
        optimizer.step()
    recorded["replayed"] = stats()
    print(json.dumps(recorded))


if __name__ == "__main__":
    main()
