#!/usr/bin/env python3
"""A fine-tuning as fms-acceleration's benchmarks run it, in our own words, with random weights.

    fms_acceleration.py MODEL full|lora BATCH          prints {"peak": bytes, "after": bytes}

What those benchmarks set (repository foundation-model-stack/fms-acceleration, commit 876e2ed6, folder scripts/benchmarks: defaults.yaml,
scenarios.yaml, accelerate.yaml, and sft_trainer.py of fms-hf-tuning 2.5.0, which they start): bf16, AdamW of PyTorch, gradient checkpointing,
packed samples, FlashAttention 2, vocabularies with one word more for padding, FSDP for several cards. The two figures are those that the
benchmark takes from the Trainer's own memory metrics.
"""
import json
import os
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM, Trainer, TrainingArguments

STEPS = 3  # of 100 there: memory is the same in every step after the first
# Sizes from the models' configurations, and the vocabularies that their tokenizers have after fms-hf-tuning added what they lacked. The
# configuration and tokenizer of PowerLM and the tokenizer of SantaCoder were not at hand. Their numbers of parameters follow from the bytes that the
# benchmark printed after training (6 a parameter). PowerLM's fits biases and 49152 words, or no biases and 49672: its peaks decide for the first.
MODELS = {
    "mistralai/Mistral-7B-v0.1": (4096, {
        "model_type": "mistral", "vocab_size": 32001, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 32768, "sliding_window": 4096}),
    "mistralai/Mixtral-8x7B-Instruct-v0.1": (4096, {
        "model_type": "mixtral", "vocab_size": 32001, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 32768, "sliding_window": None,
        "num_experts_per_tok": 2, "num_local_experts": 8}),
    "NousResearch/Llama-2-70b-hf": (4096, {
        "model_type": "llama", "vocab_size": 32001, "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80,
        "num_attention_heads": 64, "num_key_value_heads": 8, "max_position_embeddings": 4096}),
    "ibm/PowerLM-3b": (4096, {
        "model_type": "granite", "vocab_size": 49152, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 40,
        "num_attention_heads": 36, "num_key_value_heads": 36, "max_position_embeddings": 4096, "tie_word_embeddings": True,
        "attention_bias": True, "mlp_bias": True}),
    "bigcode/gpt_bigcode-santacoder": (2048, {
        "model_type": "gpt_bigcode", "vocab_size": 49158, "n_positions": 2048, "n_embd": 2048, "n_layer": 24, "n_head": 16,
        "n_inner": 8192, "multi_query": True, "activation_function": "gelu_fast"}),
}
LORA = {"r": 16, "lora_alpha": 16, "lora_dropout": 0.1, "task_type": "CAUSAL_LM", "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj"]}


class Samples(torch.utils.data.Dataset):
    """Packed samples: every one has the full length."""

    def __init__(self, length, vocabulary):
        self.length, self.vocabulary = length, vocabulary

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        tokens = torch.randint(0, self.vocabulary, (self.length,))
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": tokens.clone()}


def model_of(sizes):
    """On the host, as from_pretrained leaves it; with FSDP ranks after the first have it without data. No byte of the weights is touched."""
    sizes = dict(sizes)
    config = AutoConfig.for_model(sizes.pop("model_type"), **sizes)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, torch_dtype=torch.bfloat16, attn_implementation="flash_attention_2")
    if int(os.environ.get("LOCAL_RANK", "0")) == 0:
        model.to_empty(device="cpu")
        model.tie_weights()
    return model


def main():
    name, method, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    length, sizes = MODELS[name]
    model = model_of(sizes)
    if method == "lora":
        from peft import LoraConfig, get_peft_model
        model.enable_input_require_grads()  # as trl's SFTTrainer does it for gradient checkpointing
        model = get_peft_model(model, LoraConfig(**LORA))
    arguments = TrainingArguments(
        "build/published/fms_acceleration", per_device_train_batch_size=batch, max_steps=STEPS, gradient_checkpointing=True,
        weight_decay=0.01, warmup_steps=10, adam_epsilon=1e-4, save_strategy="no", report_to=[], disable_tqdm=True,
        skip_memory_metrics=False)
    trainer = Trainer(model=model, train_dataset=Samples(length, sizes["vocab_size"]), args=arguments)
    if trainer.is_fsdp_enabled and method == "lora":
        from peft.utils.other import fsdp_auto_wrap_policy
        trainer.accelerator.state.fsdp_plugin.auto_wrap_policy = fsdp_auto_wrap_policy(model)
    metrics = trainer.train().metrics
    if trainer.is_world_process_zero():
        after = metrics["before_init_mem_gpu"] + metrics["init_mem_gpu_alloc_delta"] + metrics["train_mem_gpu_alloc_delta"]
        print(json.dumps({"peak": after + metrics["train_mem_gpu_peaked_delta"], "after": after}), flush=True)


if __name__ == "__main__":
    main()
