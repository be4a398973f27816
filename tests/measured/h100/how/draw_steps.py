"""Draws training jobs by a seed: models of timm, torchvision and transformers, with options.   draw_steps.py JOBS.json

Models of more than 450 million parameters, and those that cannot be made without data, are left out and named.
"""
import json
import random
import sys

import measure_steps
import timm
import torch
import torchvision
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto as auto
rng = random.Random(20261127)
jobs = []
backbone = lambda name: {"weights_backbone": None} if name.startswith(("fcn", "deeplab", "lraspp")) else {}
def options(i):
    return {"optimizer": list(measure_steps.OPTIMIZERS)[i % 8] if i % 3 == 2 else ("adamw", "sgd")[i % 2], "precision": ("fp32", "amp", "bf16")[i % 3], "tf32": i % 5 == 0,
            "clip": i % 4 == 1, "train": i % 9 != 8, "mode": "eager", "checkpoint": False}
def count(job):
    with torch.device("meta"):
        model, _, _ = measure_steps.build(job)
    return sum(p.numel() for p in model.parameters())
def add(job):
    try:
        parameters = count(job)
    except Exception as e:
        print("left out", job["name"], repr(e)[:90]); return False
    if parameters > 450e6:
        print("large", job["name"], parameters); return False
    job["gib"] = round(1.5 + parameters * 16 / 2**30 + job.pop("_act", 3), 1)
    jobs.append(job); return True
names = sorted(timm.list_models()); rng.shuffle(names)
k = 0
for name in names:
    if k == 90: break
    k += add({"lib": "timm", "name": name, "batch": rng.choice((2, 3, 4, 8)), **options(k), "_act": 5})
names = sorted(n for n in torchvision.models.list_models() if not any(w in n for w in ("rcnn", "ssd", "retina", "fcos", "raft", "quantized")))
rng.shuffle(names); k = 0
for name in names:
    if k == 44: break
    video = name in torchvision.models.list_models(module=torchvision.models.video)
    size = (3, 16, 224, 224) if "mvit" in name or "swin3d" in name else (3, 8, 112, 112) if video else (3, 299, 299) if "inception" in name else (3, 224, 224)
    k += add({"lib": "torchvision", "name": name, "batch": rng.choice((2, 4, 8)) if not video else 2, "size": size, "arguments": backbone(name), **options(k), "_act": 5})
for head, table, want in (("CausalLM", auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, 45), ("MaskedLM", auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES, 14),
                    ("SequenceClassification", auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES, 14), ("Seq2SeqLM", auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES, 10),
                    ("ImageClassification", auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES, 16)):
    names = sorted(table); rng.shuffle(names); k = 0
    for kind in names:
        if k == want: break
        cls = table[kind]; cls = cls if isinstance(cls, str) else cls[0]
        try: config = CONFIG_MAPPING[kind]()
        except Exception as e: continue
        change = {a: 2 for a in ("num_hidden_layers", "n_layer", "num_layers", "encoder_layers", "decoder_layers", "n_layers", "num_decoder_layers") if isinstance(getattr(config, a, None), int) and getattr(config, a) > 2}
        if hasattr(config, "layer_types") and config.layer_types and "num_hidden_layers" in change: change["layer_types"] = config.layer_types[:2]
        size = getattr(config, "image_size", 224); size = size if isinstance(size, int) else size[0] if size else 224
        job = {"lib": "transformers", "head": head, "type": kind, "name": cls, "config": change, "batch": rng.choice((1, 2, 4)), "length": rng.choice((128, 384, 512)),
               "vocab": min(getattr(config, "vocab_size", 1000) or 1000, 30000), "image": size, "mask": ("ones", "none", "left", "right")[k % 4], **options(k)}
        job["checkpoint"] = k % 7 == 6 and head == "CausalLM"
        k += add({**job, "_act": 5})
# scripted and compiled models
for name in ("resnet18", "resnet50", "mobilenet_v2", "vgg11_bn", "densenet121", "squeezenet1_1", "shufflenet_v2_x1_0", "mnasnet1_0", "regnet_y_400mf", "efficientnet_b0", "convnext_tiny", "googlenet",
             "vit_b_16", "swin_t", "fcn_resnet50", "deeplabv3_mobilenet_v3_large", "r3d_18", "lraspp_mobilenet_v3_large", "alexnet", "wide_resnet50_2"):
    add({"lib": "torchvision", "name": name, "batch": 4, "size": (3, 8, 112, 112) if name == "r3d_18" else (3, 224, 224), "arguments": backbone(name), **options(1 if name != "vit_b_16" else 0), "mode": "eager", "_act": 5})
    jobs[-1].update(mode="script", precision="fp32", optimizer="sgd", clip=False, train=True)
front = []
for job in [j for j in jobs if j["mode"] == "eager" and j["lib"] != "timm"][3::9][:12]:
    front.append({**job, "mode": "compile", "checkpoint": False})
rng.shuffle(jobs)
jobs = front + jobs
json.dump(jobs, open(sys.argv[1], "w"), indent=0)
print(len(jobs), "jobs", sum(j["gib"] for j in jobs))
