#!/usr/bin/env python3
"""The fine-tuning of a language model as PEFT's comparison of methods runs it, in our own words, with random weights.

    peft_llm.py METHOD [LONGEST]          a name of peft_llm.json; prints {"peak": bytes, "trainable": parameters}

The comparison is method_comparison/MetaMathQA of the repository huggingface/peft (commit 5d602fdb). It trains Llama-3.2-3B in bf16 for 5,000
steps: batches of four questions with their answers, padded to the longest of the four; 80 samples are sorted, the longest first; the cache is emptied
every ten steps. "peak" is its statistic: the largest reserved memory of all steps, less what was reserved at the start.

After the cache is emptied the longest batch comes first, so the largest reserved memory is that of the 80 samples with the longest sample of
all. Its length is not published. LONGEST is the one length at which the figure of one row, lora-rank32, is
equal or nearest. All other rows have the same length. The other lengths follow a distribution with the published mean.
"""
import json
import math
import pathlib
import statistics
import sys

import torch
from peft import PeftConfig, get_peft_model
from peft.optimizers import create_lorafa_optimizer
from transformers import AutoConfig, AutoModelForCausalLM, get_cosine_schedule_with_warmup
from transformers.modeling_utils import caching_allocator_warmup

LONGEST = 703
BATCH, BUCKET, EMPTY_CACHE_EVERY, WARM_UP = 4, 20, 2, 2
MEAN, SPREAD = 210, 0.5  # of the lengths, 4,198,051 tokens in 20,000 samples; of their logarithms
LLAMA = {"vocab_size": 128256, "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24,
         "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072, "tie_word_embeddings": True, "rms_norm_eps": 1e-5,
         "bos_token_id": 128000, "eos_token_id": 128001, "rope_parameters": {
             "rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
             "original_max_position_embeddings": 8192}}


def settings_of(method):
    return json.loads(pathlib.Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))[method]


def base_model():
    """As from_pretrained with a device leaves it: all weights lie in one block that was asked for before."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model("llama", **LLAMA), dtype=torch.bfloat16)
    caching_allocator_warmup(model, {name: "cuda:0" for name, _ in model.named_parameters()}, None)
    model = model.to_empty(device="cuda")
    model.tie_weights()
    return model.eval()


def lengths(longest):
    """Of 80 samples, the longest first."""
    normal = statistics.NormalDist(math.log(MEAN) - SPREAD ** 2 / 2, SPREAD)
    count = BATCH * BUCKET
    drawn = sorted((round(math.exp(normal.inv_cdf((number + 0.5) / count))) for number in range(count)), reverse=True)
    return [longest, *(min(length, longest) for length in drawn[1:])]


def batch_of(sizes):
    width = max(sizes)
    ids, mask = torch.full((len(sizes), width), 128001), torch.zeros(len(sizes), width, dtype=torch.int64)
    for row, size in enumerate(sizes):
        ids[row, :size] = torch.randint(0, 128000, (size,))
        mask[row, :size] = 1
    return {"input_ids": ids.to("cuda"), "attention_mask": mask.to("cuda")}


def train_step(model, optimizer, scheduler, sizes, last):
    """`last`: what the step before it leaves, as the variables of a loop do."""
    batch = batch_of(sizes)
    labels = batch["input_ids"].clone()
    for row, size in enumerate(sizes):
        labels[row, size + 1:] = -100
    batch["labels"] = labels
    last["batch"] = batch
    count = batch["attention_mask"].sum().item()
    optimizer.zero_grad()
    last["outputs"] = model(**batch, num_items_in_batch=count)
    last["loss"] = last["outputs"].loss
    last["loss"].backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()


def optimizer_of(model, kind):
    if kind == "lora-fa":
        return create_lorafa_optimizer(model, r=32, lora_alpha=64, lr=1e-4, weight_decay=0.1)
    return torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1)


def main():
    settings = settings_of(sys.argv[1])
    longest = int(sys.argv[2]) if len(sys.argv) > 2 else LONGEST
    torch.nn.Linear(1, 1).to("cuda")
    torch.cuda.reset_peak_memory_stats()
    at_start = torch.cuda.max_memory_reserved()
    model, configuration = base_model(), settings["adapter"]
    if configuration is not None:
        model = get_peft_model(model, PeftConfig.from_peft_type(**configuration), autocast_adapter_dtype=settings.get("autocast_adapter_dtype", True))
    optimizer = optimizer_of(model, settings.get("optimizer"))
    scheduler = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=250, num_training_steps=5000)
    model.train()
    sizes, last, number = lengths(longest), {}, 0
    batches = [sizes[start:start + BATCH] for start in range(0, len(sizes), BATCH)]
    for group in (batches[-WARM_UP:], batches[:EMPTY_CACHE_EVERY]):
        for batch in group:
            train_step(model, optimizer, scheduler, batch, last)
            number += 1
            if configuration is not None and configuration["peft_type"] in ("ADALORA", "ADAMSS"):
                model.base_model.update_and_allocate(number)
        torch.cuda.empty_cache()
    trainable = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    print(json.dumps({"peak": torch.cuda.max_memory_reserved() - at_start, "trainable": trainable}), flush=True)


if __name__ == "__main__":
    main()
