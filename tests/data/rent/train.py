"""Trains a causal language model of a built-in configuration, and prints the peaks that PyTorch's allocator had.

  metaprof run --device rtx4090 -- python train.py CONFIG BATCH TOKENS full|lora [recomputed]

recorded.csv has what it printed on emulated cards with the largest batch that metaprof rent says, and whether one more
sample ran (torch 2.11.0, transformers 5.17.0, peft 0.21.2).
"""

import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM

config = AutoConfig.from_pretrained(sys.argv[1])
batch, tokens, method = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
recomputed = sys.argv[5:] == ["recomputed"]
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = AutoModelForCausalLM.from_config(config)
torch.set_default_dtype(torch.float32)
model.train()
model.config.use_cache = False
if recomputed:
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
if method == "lora":
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(model, LoraConfig(r=8))
    if recomputed:
        model.enable_input_require_grads()
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
ids = torch.zeros(batch, tokens, dtype=torch.int64).cuda()
for _ in range(3):
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("peak", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
