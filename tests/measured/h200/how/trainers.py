"""What a library's own trainer takes by part: the program prints, after each part, the allocator's peaks since the last point.

    trainers.py NAME      hf | seq2seq | lightning | accelerate | plain
"""
import gc
import logging
import os
import shutil
import sys
import tempfile

import torch

FOLDER = tempfile.mkdtemp()


def host_mib():
    with open("/proc/self/status") as f:
        lines = dict(line.split(":", 1) for line in f if line.startswith(("VmHWM", "VmRSS")))
    return [int(lines[k].split()[0]) // 1024 for k in ("VmRSS", "VmHWM")]


def point(name):
    torch.cuda.synchronize()
    print("POINT", name, torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(),
          torch.cuda.memory_reserved(), torch.cuda.max_memory_reserved(), *host_mib(), flush=True)
    torch.cuda.reset_peak_memory_stats()


class Rows(torch.utils.data.Dataset):
    def __init__(self, rows, length, vocab=32000, seq2seq=False):
        g = torch.Generator().manual_seed(0)
        self.ids = torch.randint(5, vocab, (rows, length), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.ids[i], "attention_mask": torch.ones_like(self.ids[i])}


def hf():
    import transformers
    config = transformers.LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, vocab_size=32000)
    args = dict(output_dir=FOLDER, per_device_train_batch_size=4, per_device_eval_batch_size=8, max_steps=6, bf16=True, report_to=[],
                save_steps=3, save_strategy="steps", logging_steps=100, disable_tqdm=True, max_grad_norm=1.0)
    model = transformers.LlamaForCausalLM(config)
    trainer = transformers.Trainer(model, transformers.TrainingArguments(**args), train_dataset=Rows(64, 512), eval_dataset=Rows(32, 512))
    point("build")
    trainer.train()
    point("train")
    trainer.evaluate()
    point("evaluate")
    trainer.predict(Rows(32, 512))
    point("predict")
    trainer.save_model()
    point("save")
    model.generate(torch.randint(5, 32000, (8, 128)).cuda(), max_new_tokens=64, do_sample=False, pad_token_id=0)
    point("generate")
    del trainer, model
    gc.collect()
    model = transformers.LlamaForCausalLM.from_pretrained(FOLDER)
    trainer = transformers.Trainer(model, transformers.TrainingArguments(**args | {"max_steps": 8}), train_dataset=Rows(64, 512))
    point("build again")
    trainer.train(resume_from_checkpoint=os.path.join(FOLDER, "checkpoint-6"))
    point("resume")


def seq2seq():
    import transformers
    config = transformers.T5Config(d_model=512, d_ff=2048, num_layers=6, num_heads=8, d_kv=64, vocab_size=32128, decoder_start_token_id=0)
    model = transformers.T5ForConditionalGeneration(config)
    args = transformers.Seq2SeqTrainingArguments(
        output_dir=FOLDER, per_device_train_batch_size=8, per_device_eval_batch_size=16, max_steps=4, report_to=[], predict_with_generate=True,
        generation_max_length=48, save_strategy="no", disable_tqdm=True, optim="adafactor", gradient_accumulation_steps=2)
    trainer = transformers.Seq2SeqTrainer(model, args, train_dataset=Rows(64, 256), eval_dataset=Rows(32, 256))
    point("build")
    trainer.train()
    point("train")
    trainer.evaluate(max_length=48, min_length=48)
    point("evaluate")
    trainer.save_model()
    point("save")


def lightning():
    import lightning as L
    import torchvision
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    class Classifier(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torchvision.models.resnet50()

        def loss(self, batch):
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def training_step(self, batch, _):
            return self.loss(batch)

        def validation_step(self, batch, _):
            self.log("val", self.loss(batch))

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    def loader(rows, batch):
        g = torch.Generator().manual_seed(0)
        data = torch.utils.data.TensorDataset(torch.randn(rows, 3, 224, 224, generator=g), torch.randint(0, 1000, (rows,), generator=g))
        return torch.utils.data.DataLoader(data, batch)

    def trainer(steps):
        return L.Trainer(max_steps=steps, accelerator="gpu", devices=1, precision="16-mixed", logger=False, enable_progress_bar=False,
                         enable_model_summary=False, default_root_dir=FOLDER, enable_checkpointing=False, limit_val_batches=2, num_sanity_val_steps=0)
    model = Classifier()
    first = trainer(4)
    point("build")
    first.fit(model, loader(128, 32), loader(128, 64))
    point("train")
    first.validate(model, loader(128, 64), verbose=False)
    point("evaluate")
    path = os.path.join(FOLDER, "last.ckpt")
    first.save_checkpoint(path)
    point("save")
    del first, model
    gc.collect()
    trainer(6).fit(Classifier(), loader(128, 32), ckpt_path=path)
    point("resume")


def accelerate():
    import accelerate as A
    import transformers
    accelerator = A.Accelerator(gradient_accumulation_steps=2, mixed_precision="bf16")
    config = transformers.BertConfig(num_labels=2)
    model = transformers.BertForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def batches(n):
        rows = [{"input_ids": r, "attention_mask": torch.ones_like(r), "labels": torch.tensor(i % 2)} for i, r in enumerate(Rows(64, 384, 30000).ids)]
        return torch.utils.data.DataLoader(rows, n)
    model, optimizer, train, val = accelerator.prepare(model, optimizer, batches(8), batches(32))
    point("build")
    for batch in train:
        with accelerator.accumulate(model):
            accelerator.backward(model(**batch).loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    point("train")
    model.eval()
    seen = []
    with torch.no_grad():
        for batch in val:
            seen.append(accelerator.gather_for_metrics(model(**batch).logits))
    point("evaluate")
    accelerator.save_state(FOLDER)
    point("save")
    accelerator.load_state(FOLDER)
    point("load")
    model.train()
    for i, batch in enumerate(train):
        with accelerator.accumulate(model):
            accelerator.backward(model(**batch).loss)
            optimizer.step()
            optimizer.zero_grad()
        if i == 3:
            break
    point("resume")


def plain():
    import torch.distributed.checkpoint as dcp
    import torchvision
    from safetensors.torch import load_file, save_file
    model = torchvision.models.vit_b_16().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    ema = torch.optim.swa_utils.AveragedModel(model)
    point("build")
    x, y = torch.randn(16, 3, 224, 224).cuda(), torch.randint(0, 1000, (16,)).cuda()

    def train(n):
        for _ in range(n):
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
            ema.update_parameters(model)
    train(3)
    point("train")
    val = 0
    for _ in range(3):
        val = val + torch.nn.functional.cross_entropy(model(x), y)
    point("evaluate with a graph")
    del val
    model.eval()
    with torch.inference_mode():
        for _ in range(3):
            model(x.repeat(4, 1, 1, 1))
    model.train()
    point("evaluate")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "ema": ema.state_dict()}, os.path.join(FOLDER, "all.pt"))
    point("save")
    dcp.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, checkpoint_id=os.path.join(FOLDER, "dcp"))
    point("save with dcp")
    save_file(model.state_dict(), os.path.join(FOLDER, "model.safetensors"))
    point("save as safetensors")
    checkpoint = torch.load(os.path.join(FOLDER, "all.pt"), map_location="cuda")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    point("load to the device")
    train(2)
    point("resume with the checkpoint kept")
    del checkpoint
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    dcp.load(state, checkpoint_id=os.path.join(FOLDER, "dcp"))
    point("load with dcp")
    model.load_state_dict(load_file(os.path.join(FOLDER, "model.safetensors"), device="cuda"))
    point("load from safetensors")
    train(2)
    point("resume")


try:
    torch.manual_seed(0)
    globals()[sys.argv[1]]()
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
