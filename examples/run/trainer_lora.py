import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

config = LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, vocab_size=32000)
model = get_peft_model(LlamaForCausalLM(config), LoraConfig(r=16, target_modules=["q_proj", "v_proj"]))
model.enable_input_require_grads()
data = [{"input_ids": torch.zeros(512, dtype=torch.long), "labels": torch.zeros(512, dtype=torch.long)} for _ in range(64)]
arguments = TrainingArguments(output_dir="out", per_device_train_batch_size=4, gradient_accumulation_steps=2, bf16=True,
                              gradient_checkpointing=True, max_steps=10, report_to="none", logging_steps=1)
Trainer(model, arguments, train_dataset=data).train()
