#!/usr/bin/env python3
"""Generation of 2,048 tokens as Qwen3's speed benchmark runs it, in our own words, with random weights.

    qwen3.py MODEL LENGTH          prints {"peak": bytes, "held": bytes}

The benchmark (repository QwenLM/Qwen3, commit 7a2f61ff, examples/speed-benchmark) sums torch.cuda.max_memory_allocated of all GPUs after one
call of generate: batch 1, FlashAttention 2, a cache of keys and values, LENGTH tokens of a prompt. The settings of sampling are those
that the models come with. Of the 2,048 tokens the first and the last three are generated: each one between takes a little more than the one before it.
"held" is what is allocated after the last token: the weights, the cache, and what libraries keep.
"""
import json
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, GenerationConfig, Qwen3ForCausalLM, Qwen3MoeForCausalLM  # noqa: F401 (not on "meta")

NEW, FEW = 2048, 3
# hidden_size, intermediate_size, num_hidden_layers, num_attention_heads, num_key_value_heads, tie_word_embeddings
MODELS = {
    "Qwen3-0.6B": (1024, 3072, 28, 16, 8, True), "Qwen3-1.7B": (2048, 6144, 28, 16, 8, True), "Qwen3-4B": (2560, 9728, 36, 32, 8, True),
    "Qwen3-8B": (4096, 12288, 36, 32, 8, False), "Qwen3-14B": (5120, 17408, 40, 40, 8, False), "Qwen3-32B": (5120, 25600, 64, 64, 8, False),
    "Qwen3-30B-A3B": (2048, 6144, 48, 32, 4, False), "Qwen3-235B-A22B": (4096, 12288, 94, 64, 4, False),
}
EXPERTS = {"Qwen3-30B-A3B": 768, "Qwen3-235B-A22B": 1536}  # moe_intermediate_size, with 128 experts of which a token takes 8


def config_of(name):
    hidden, intermediate, layers, heads, key_value_heads, tied = MODELS[name]
    sizes = {"hidden_size": hidden, "intermediate_size": intermediate, "num_hidden_layers": layers, "num_attention_heads": heads,
             "num_key_value_heads": key_value_heads, "tie_word_embeddings": tied, "vocab_size": 151936, "head_dim": 128,
             "max_position_embeddings": 40960, "rope_theta": 1000000, "rms_norm_eps": 1e-6}
    if name in EXPERTS:
        return AutoConfig.for_model("qwen3_moe", moe_intermediate_size=EXPERTS[name], num_experts=128, num_experts_per_tok=8, norm_topk_prob=True,
                                    decoder_sparse_step=1, **sizes)
    return AutoConfig.for_model("qwen3", **sizes)


def model_of(name):
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config_of(name), torch_dtype=torch.bfloat16, attn_implementation="flash_attention_2")
    model.to_empty(device="cpu")  # no byte of it is touched
    model.tie_weights()
    return model.to("cuda").eval()


def filled_cache(config, length):
    """Keys and values of `length` tokens."""
    cache, shape = DynamicCache(), (1, config.num_key_value_heads, length, config.head_dim)
    for layer in range(config.num_hidden_layers):
        cache.update(*(torch.zeros(shape, dtype=torch.bfloat16, device="cuda") for _ in range(2)), layer)
    return cache


def generate(model, length, **state):
    """A few tokens after `length` others."""
    settings = GenerationConfig(bos_token_id=151643, eos_token_id=[151645, 151643], pad_token_id=151643, do_sample=True, temperature=0.6, top_k=20,
                                top_p=0.95, min_length=length + FEW, max_new_tokens=FEW)
    inputs = {"input_ids": torch.full((1, length), 35946).to("cuda"), "attention_mask": torch.ones(1, length, dtype=torch.int64).to("cuda")}
    model.generate(**inputs, generation_config=settings, **state)


def main():
    model, length = model_of(sys.argv[1]), int(sys.argv[2])
    generate(model, length)
    end = length + NEW - FEW
    cache = filled_cache(model.config, end - 1)
    generate(model, end, past_key_values=cache)
    print(json.dumps({"peak": torch.cuda.max_memory_allocated(), "held": torch.cuda.memory_allocated()}), flush=True)


if __name__ == "__main__":
    main()
