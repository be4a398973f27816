"""A training step under switches that change no line of the model: the allocator's peaks of three steps; the least memory that runs.

    switches.py MODEL SWITCH[,SWITCH…] [FRACTION_BYTES]     one line of JSON
"""
import json
import sys

import torch

MODEL, SWITCHES = sys.argv[1], [s for s in sys.argv[2].split(",") if s != "none"]
LIMIT = int(sys.argv[3]) if len(sys.argv) > 3 else 0
torch.manual_seed(0)


def build():
    import torchvision
    if MODEL == "gpt2":
        import transformers
        m = transformers.GPT2LMHeadModel(transformers.GPT2Config(resid_pdrop=0.1))
        ids = torch.randint(5, 50000, (8, 512))
        return m, {"input_ids": ids, "labels": ids}, lambda m, x: m(**x).loss
    if MODEL == "llama":
        import transformers
        m = transformers.LlamaForCausalLM(transformers.LlamaConfig(hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16))
        ids = torch.randint(5, 32000, (4, 1024))
        return m, {"input_ids": ids, "labels": ids}, lambda m, x: m(**x).loss
    m = getattr(torchvision.models, MODEL)()
    x = {"x": torch.randn(32, 3, 224, 224), "y": torch.randint(0, 1000, (32,))}
    return m, x, lambda m, x: torch.nn.functional.cross_entropy(m(x["x"]), x["y"])


def on(name):
    return name in SWITCHES


def main():
    if LIMIT:
        torch.cuda.set_per_process_memory_fraction(LIMIT / torch.cuda.get_device_properties(0).total_memory)
    model, x, loss_of = build()
    model = model.cuda()
    if on("bf16"):
        model = model.bfloat16()
    if on("channels_last"):
        model = model.to(memory_format=torch.channels_last)
    if on("checkpoint"):
        model.gradient_checkpointing_enable()
    x = {k: v.cuda() for k, v in x.items()}
    if on("bf16"):
        x = {k: v.bfloat16() if v.is_floating_point() else v for k, v in x.items()}
    kinds = {"foreach": {"foreach": True}, "loop": {"foreach": False}, "fused": {"fused": True}}
    options = next((o for n, o in kinds.items() if on(n)), {})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, **options) if on("sgd") else torch.optim.AdamW(model.parameters(), **options)
    micro = 4 if on("micro") else 1
    for _ in range(4):
        for part in range(micro):
            n = next(iter(x.values())).shape[0] // micro
            batch = {k: v[part * n:(part + 1) * n] for k, v in x.items()}
            if on("amp") or on("amp_no_cache"):
                with torch.autocast("cuda", torch.bfloat16, cache_enabled=not on("amp_no_cache")):
                    loss = loss_of(model, batch)
            else:
                loss = loss_of(model, batch)
            loss.backward()
        if on("clip"):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=not on("loop"))
        optimizer.step()
        optimizer.zero_grad(set_to_none=not on("keep_zeros"))


line = {"model": MODEL, "switches": SWITCHES, "limit": LIMIT}
try:
    main()
    line["runs"] = True
except torch.OutOfMemoryError as error:
    line["runs"] = False
stats = torch.cuda.memory_stats()
line |= {k: stats[f"{k}_bytes.all.peak"] for k in ("allocated", "reserved", "requested")} | {"retries": stats["num_alloc_retries"]}
print(json.dumps(line), flush=True)
