"""Generates two tokens after a prompt with a causal language model of a built-in configuration, and prints the peaks.

  metaprof run --device rtx3060 -- python generate.py CONFIG BATCH TOKENS
"""

import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM

config = AutoConfig.from_pretrained(sys.argv[1])
batch, tokens = int(sys.argv[2]), int(sys.argv[3])
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = AutoModelForCausalLM.from_config(config).eval()
torch.set_default_dtype(torch.float32)
ids = torch.zeros(batch, tokens, dtype=torch.int64).cuda()
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=2, do_sample=False, pad_token_id=0, eos_token_id=None)
print("peak", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
