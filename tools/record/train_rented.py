#!/usr/bin/env python3
"""Steps of models of transformers as one writes them with transformers, peft and bitsandbytes, each in a process of its own. It knows nothing
of metaprof.

    train_rented.py STEP…

A step is JSON: config (a file), method (full, lora, qlora, generate), recomputed, precision, loss (transformers, plain), adapters ("all-linear", or
what peft takes), rank, inputs of one sample (name, dtype, shape), context, batch. For each it prints a line: "STEP number ENDED allocated reserved",
with the peaks of PyTorch's allocator. ENDED is "ran" or "out-of-memory".
"""
import json
import sys

import torch
import transformers

from forks import each_in_a_fork

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
STEPS = 3


def class_of(step, config):
    if step["method"] == "generate":
        return transformers.AutoModelForCausalLM._model_mapping[type(config)]
    return getattr(transformers, config.architectures[0])


def with_whole_weights(step, config):
    torch.set_default_dtype(DTYPES[step["precision"]])
    with torch.device("cuda"):
        model = class_of(step, config)(config)
    torch.set_default_dtype(torch.float32)
    return model


def with_weights_of_4_bits(step, config):
    """As from_pretrained(quantization_config=…) leaves it, but for the reading of weights."""
    import bitsandbytes
    from transformers.integrations.bitsandbytes import replace_with_bnb_linear
    from transformers.quantizers.base import get_keys_to_not_convert

    dtype = DTYPES[step["precision"]]
    quantization = transformers.BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
                                                   bnb_4bit_compute_dtype=dtype)
    torch.set_default_dtype(dtype)
    with torch.device("meta"):
        model = class_of(step, config)(config)
    model = replace_with_bnb_linear(model, modules_to_not_convert=get_keys_to_not_convert(model), quantization_config=quantization)
    packed = {name: module.weight.shape for name, module in model.named_modules() if isinstance(module, bitsandbytes.nn.Linear4bit)}
    for name in packed:
        model.get_submodule(name).weight = None  # bitsandbytes packs what is on the device
    model.to_empty(device="cuda")
    for name, shape in packed.items():
        weight = torch.empty(shape, dtype=dtype, device="cuda")
        model.get_submodule(name).weight = bitsandbytes.nn.Params4bit(weight, requires_grad=False, quant_type="nf4",
                                                                      compress_statistics=True).to("cuda")
    torch.set_default_dtype(torch.float32)
    model.tie_weights()
    model.is_loaded_in_4bit = True
    return model


def with_adapters(step, model):
    import peft

    targets = {"target_modules": step["adapters"]} if step["adapters"] == "all-linear" else {}
    model = peft.get_peft_model(model, peft.LoraConfig(r=step["rank"], **targets))
    if step["recomputed"]:
        model.enable_input_require_grads()
    return model


def loss_of(step, model, inputs):
    if step["loss"] == "transformers":
        return model(**inputs).loss
    labels = inputs["labels"]
    logits = model(**{name: value for name, value in inputs.items() if name != "labels"}).logits
    return torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def train(step, model):
    model.train()
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    if step["recomputed"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if step["method"] in ("lora", "qlora"):
        model = with_adapters(step, model)
    start_of_measurement()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    inputs = {each["name"]: torch.zeros(step["batch"], *each["shape"][1:], dtype=getattr(torch, each["dtype"])).cuda() for each in step["inputs"]}
    for _ in range(STEPS):
        loss_of(step, model, inputs).backward()
        optimizer.step()
        optimizer.zero_grad()


def generate(step, model):
    """The prompt's call and that of the last token of the context."""
    model.eval()
    ids = torch.zeros(step["batch"], step["context"] - 1, dtype=torch.int64).cuda()
    mask = torch.ones_like(ids)
    start_of_measurement()
    model.generate(ids, attention_mask=mask, max_new_tokens=2, do_sample=False, pad_token_id=0, eos_token_id=None)


def start_of_measurement():
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def work(numbered):
    number, step = numbered
    config = transformers.AutoConfig.from_pretrained(step["config"])
    ended = "ran"
    try:
        model = (with_weights_of_4_bits if step["method"] == "qlora" else with_whole_weights)(step, config)
        (generate if step["method"] == "generate" else train)(step, model)
    except torch.OutOfMemoryError:
        ended = "out-of-memory"
    print("STEP", number, ended, torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), flush=True)


def main():
    steps = [json.loads(line) for line in sys.argv[1:]]
    for step in steps:  # what a class imports, all processes have; bitsandbytes starts the device when it is imported
        class_of(step, transformers.AutoConfig.from_pretrained(step["config"]))
    each_in_a_fork(list(enumerate(steps)), work)


if __name__ == "__main__":
    main()
