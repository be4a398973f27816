"""One training job of a drawn list, and the list's runner: peaks of every phase as the framework's own statistics say.

    measure_steps.py run LIST OUT SECONDS GIB PROCESSES      all jobs of LIST, each in a fork, several at once; OUT: one JSON line a job
    measure_steps.py one LIST INDEX                          one job, in this process; prints its line
"""
import json
import os
import random
import signal
import sys
import time


def config_of(job):
    from transformers import CONFIG_MAPPING
    config = CONFIG_MAPPING[job["type"]]()
    for name, value in job.get("config", {}).items():
        setattr(config, name, value)
    return config


def build(job):
    """The model on the default device; a function that makes its inputs; a function that gives the loss."""
    import torch
    lib, name, n = job["lib"], job["name"], job["batch"]
    if lib == "timm":
        import timm
        model = timm.create_model(name)
        size = model.pretrained_cfg.get("input_size", (3, 224, 224))
        inputs = lambda: (torch.randn(n, *size, device="cuda"), torch.randint(0, 1000, (n,), device="cuda"))
        loss = lambda m, x: torch.nn.functional.cross_entropy(m(x[0]), x[1])
    elif lib == "torchvision":
        import torchvision
        model = torchvision.models.get_model(name, weights=None, **job.get("arguments", {}))
        s = job["size"]
        inputs = lambda: (torch.randn(n, *s, device="cuda"), torch.randint(0, 400, (n,), device="cuda"))
        def loss(m, x):
            out = m(x[0])
            out = out.logits if hasattr(out, "logits") else out["out"].mean((2, 3)) if isinstance(out, dict) else out
            return torch.nn.functional.cross_entropy(out, x[1] % out.shape[1])
    else:
        import transformers
        config = config_of(job)
        if job["head"] == "SequenceClassification" and getattr(config, "pad_token_id", None) is None:
            config.pad_token_id = 0
        model = getattr(transformers, name)(config)
        length, vocab = job["length"], job["vocab"]
        def inputs():
            if job["head"] == "ImageClassification":
                s = job["image"]
                return {"pixel_values": torch.randn(n, 3, s, s, device="cuda"), "labels": torch.randint(0, 2, (n,), device="cuda")}
            ids = torch.randint(5, vocab, (n, length))
            kept = {"input_ids": ids.cuda()}
            if job["mask"] != "none":
                mask = torch.ones(n, length, dtype=torch.long)
                if job["mask"] == "left":
                    mask[0, : length // 4] = 0
                elif job["mask"] == "right":
                    mask[0, -length // 4:] = 0
                kept["attention_mask"] = mask.cuda()
            kept["labels"] = (torch.randint(0, 2, (n,)) if job["head"] == "SequenceClassification" else ids).cuda()
            return kept
        loss = lambda m, x: m(**x).loss
    if job["mode"] == "script":
        model = torch.jit.script(model)
    if job["mode"] == "compile":
        model = torch.compile(model)
    if job["checkpoint"]:
        model.gradient_checkpointing_enable()
    return model, inputs, loss


OPTIMIZERS = {"adamw": ("AdamW", {}), "sgd": ("SGD", {"momentum": 0.9}), "adam_for": ("Adam", {"foreach": False}), "adamw_fused": ("AdamW", {"fused": True}),
              "adafactor": ("Adafactor", {}), "rmsprop": ("RMSprop", {}), "adagrad": ("Adagrad", {}), "nadam": ("NAdam", {})}


def measure(job):
    import torch
    torch.manual_seed(0)
    random.seed(0)
    torch.backends.cuda.matmul.allow_tf32 = job["tf32"]
    rows = []
    def mark(what):
        torch.cuda.synchronize()
        s = torch.cuda.memory_stats()
        rows.append([what] + [s[k] for k in ("allocated_bytes.all.current", "allocated_bytes.all.peak", "requested_bytes.all.peak",
                                             "reserved_bytes.all.current", "reserved_bytes.all.peak", "num_alloc_retries")])
        torch.cuda.reset_peak_memory_stats()
    if job["precision"] == "bf16":
        torch.set_default_dtype(torch.bfloat16)
    torch.cuda.init()
    with torch.device("cuda"):
        model, inputs, loss_of = build(job)
    torch.set_default_dtype(torch.float32)
    model.train(job["train"])
    mark("model")
    cls, kw = OPTIMIZERS[job["optimizer"]]
    optimizer = getattr(torch.optim, cls)(model.parameters(), lr=1e-4, **kw)
    for step in range(3):
        x = inputs()
        if job["precision"] == "bf16":
            cast = lambda v: v.bfloat16() if v.is_floating_point() else v
            x = {k: cast(v) for k, v in x.items()} if isinstance(x, dict) else tuple(cast(v) for v in x)
        mark(f"inputs {step}")
        with torch.autocast("cuda", torch.bfloat16, enabled=job["precision"] == "amp"):
            loss = loss_of(model, x)
        mark(f"forward {step}")
        loss.backward()
        mark(f"backward {step}")
        if job["clip"]:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        mark(f"optimizer {step}")
        optimizer.zero_grad()
        del loss, x
        mark(f"end {step}")
    return rows


def line_of(index, job):
    began = time.time()
    try:
        row = {"job": index, "name": job["name"], "rows": measure(job)}
    except BaseException as e:
        row = {"job": index, "name": job["name"], "error": repr(e)[:400]}
    row["seconds"] = round(time.time() - began, 1)
    return row


def run(jobs, out, seconds, gib, processes):
    end = time.time() + seconds
    import torch
    count = torch._C._cuda_getDeviceCount
    torch._C._cuda_getDeviceCount = lambda: 1
    import timm, torchvision, transformers, torch._dynamo, transformers.models.auto.modeling_auto  # noqa
    print("imported", flush=True)
    torch.set_num_threads(1)
    live, used, todo, done = {}, 0.0, list(enumerate(jobs)), 0
    file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while todo or live:
        while todo and len(live) < processes and used + todo[0][1].get("gib", 8) <= gib and time.time() < end - 10:
            index, job = todo.pop(0)
            pid = os.fork()
            if pid == 0:
                torch._C._cuda_getDeviceCount = count
                signal.alarm(int(max(5, end - time.time())))
                os.dup2(os.open(out + ".log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
                os.dup2(2, 1)
                os.write(file, (json.dumps(line_of(index, job)) + "\n").encode())
                os._exit(0)
            live[pid] = job.get("gib", 8)
            used += live[pid]
        if not live:
            break
        if time.time() >= end - 10:
            todo = []
        pid, _ = os.wait()
        used -= live.pop(pid)
        done += 1
    print(done, "of", len(jobs), "jobs ran", flush=True)


if __name__ == "__main__":
    jobs = json.load(open(sys.argv[2]))
    if sys.argv[1] == "one":
        print(json.dumps(line_of(int(sys.argv[3]), jobs[int(sys.argv[3])])))
    else:
        run(jobs, sys.argv[3], float(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]))
