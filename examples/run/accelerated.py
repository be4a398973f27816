import torch
from accelerate import Accelerator
from transformers import BertConfig, BertForSequenceClassification, get_scheduler

accelerator = Accelerator(mixed_precision="bf16")
model = BertForSequenceClassification(BertConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024, num_labels=2))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
rows = [{"input_ids": torch.randint(1000, (128,)), "labels": torch.tensor(number % 2)} for number in range(48)]
loader = torch.utils.data.DataLoader(rows, batch_size=8, shuffle=True)
scheduler = get_scheduler("linear", optimizer, num_warmup_steps=1, num_training_steps=3)
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
for batch in loader:
    out = model(**batch)
    accelerator.backward(out.loss)
    accelerator.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
    chosen = accelerator.gather_for_metrics(out.logits.argmax(-1))
accelerator.print("answers of all ranks", tuple(chosen.shape), "peak", torch.cuda.max_memory_allocated())
