"""Trains GPT-2 on batches of different lengths, and prints the peaks of the steps: the largest and its step, 99th percentile, mean;
where memory runs out, the step in which it does.

  metaprof run --device l40s -- python train.py lengths.txt 8 1

recorded.csv has what it printed on the emulated L40S (torch 2.11.0, transformers 5.17.0).
"""

import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel

lengths = [int(line) for line in open(sys.argv[1])]
batch, accumulate = int(sys.argv[2]), int(sys.argv[3])
model = GPT2LMHeadModel(GPT2Config(use_cache=False)).cuda().train()
optimizer = torch.optim.AdamW(model.parameters())
allocated, reserved = [], []
for number, first in enumerate(range(0, len(lengths), batch)):
    some = lengths[first : first + batch]
    ids = torch.zeros(len(some), max(some), dtype=torch.int64)
    ids, labels = ids.cuda(), ids.cuda()
    if number % accumulate == 0:
        torch.cuda.reset_peak_memory_stats()
    try:
        model(input_ids=ids, labels=labels).loss.backward()
    except torch.OutOfMemoryError:
        sys.exit(f"ended,{number // accumulate},,,")
    if number % accumulate < accumulate - 1:
        continue
    optimizer.step()
    optimizer.zero_grad()
    allocated.append(torch.cuda.max_memory_allocated())
    reserved.append(torch.cuda.max_memory_reserved())
for name, peaks in ("allocated", allocated), ("reserved", reserved):
    largest = max(peaks)
    print(name, largest, peaks.index(largest), sorted(peaks)[(len(peaks) - 1) * 99 // 100], sum(peaks) // len(peaks), sep=",")
