"""The Trainer of transformers says before its first step what training will take, and stops where that does not fit."""
import torch
import transformers

from metaprof.integrations.hugging_face import MetaprofCallback

model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=2, n_embd=128, n_head=4, vocab_size=1000))
data = [{"input_ids": torch.arange(128), "labels": torch.arange(128)}] * 32
arguments = transformers.TrainingArguments(
    output_dir="out", per_device_train_batch_size=8, gradient_accumulation_steps=2, max_steps=2, save_strategy="no", report_to=[], use_cpu=True,
    disable_tqdm=True)
callback = MetaprofCallback(device="rtx4090", stop=True)
transformers.Trainer(model, arguments, train_dataset=data, callbacks=[callback]).train()
print(callback.profile.peak.allocated, "bytes at the peak, in", callback.profile.peak.phase)
