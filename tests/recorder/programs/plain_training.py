"""A training script as people write them, for each configuration of a recording. It knows nothing of metaprof.

    plain_training.py CONFIGURATION.json…        one process for each, made by a fork after the imports
    plain_training.py --here CONFIGURATION.json  in this process

Builds the model with the zoo of the folder that METAPROF_SHARED names. A configuration is what the `config` member of a
recording is; the loop is the one that was recorded.
"""
import contextlib
import fnmatch
import functools
import json
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.environ["METAPROF_SHARED"], "tools"))
import record_model  # noqa: E402  (its table of optimizers, and how it builds a model)


def train(c):
    with record_model.no_initialisation():  # values do not matter, and a large model is never touched
        module, args = record_model.build(c, torch)
    amp = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}.get(c["precision"])
    module.to("cuda")
    args = tuple(a.to("cuda") for a in args)
    optimizer = record_model.make_optimizer(c, torch, [p for p in module.parameters() if p.requires_grad]) if c["mode"] == "train" else None
    scaler = torch.amp.GradScaler("cuda") if c["precision"] == "amp-fp16" and c["mode"] == "train" else None
    grad = contextlib.nullcontext if c["mode"] in ("train", "eval") else torch.no_grad if c["mode"] == "no-grad" else torch.inference_mode
    for step in range(c["steps"]):
        for micro in range(c["accumulate"]):
            with grad(), torch.autocast("cuda", amp or torch.float32, enabled=amp is not None):
                loss = module(*args)
            if c["mode"] == "train":
                (scaler.scale(loss) if scaler else loss).backward()
        if optimizer:
            if scaler and (c["clip_norm"] or c["clip_value"]): scaler.unscale_(optimizer)
            if c["clip_norm"]: torch.nn.utils.clip_grad_norm_(module.parameters(), c["clip_norm"])
            if c["clip_value"]: torch.nn.utils.clip_grad_value_(module.parameters(), c["clip_value"])
            if scaler: scaler.step(optimizer); scaler.update()
            else: optimizer.step()
            optimizer.zero_grad(set_to_none=c["zero_grad_to_none"])
    global kept  # as the names of a script that is no function
    kept = module, args, optimizer, loss


def main(words):
    if words[0] == "--here":
        return train(json.load(open(words[1])))
    import torch._dynamo, transformers  # noqa: F401 E401
    from torch.utils import checkpoint  # noqa: F401
    for number, file in enumerate(words):
        os.environ["RANK"] = str(number)  # by which the report tells them apart
        child = os.fork()
        if child == 0:
            try:
                train(json.load(open(file)))
            except torch.OutOfMemoryError:
                pass
            sys.exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
