import deepspeed
import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = {"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True}, "zero_optimization": {"stage": 3},
          "optimizer": {"type": "AdamW", "params": {"lr": 1e-4, "torch_adam": True}}}
with deepspeed.zero.Init(config_dict_or_path=config):
    model = LlamaForCausalLM(LlamaConfig(hidden_size=512, intermediate_size=1408, num_hidden_layers=4, num_attention_heads=8, vocab_size=32000))
engine, *_ = deepspeed.initialize(model=model, config=config)
ids = torch.zeros(2, 256, dtype=torch.long, device=engine.device)
for step in range(3):
    loss = engine(input_ids=ids, labels=ids).loss
    engine.backward(loss)
    engine.step()
print("peak", torch.cuda.max_memory_allocated())
