#!/usr/bin/env python3
"""Compares what `metaprof profile` says is kept for backward with what the framework hands to saved-tensor hooks.

Needs PyTorch and torchvision, on the CPU. Each model runs one forward with a loss, and each storage that a hook sees
counts once; parameters and buffers do not count. The same model is exported, and profiled on the CPU:

    compare_saved.py build/release/cli/metaprof [MODEL ...]
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

MODELS = ("alexnet vgg11 vgg11_bn resnet18 resnet50 resnext50_32x4d wide_resnet50_2 densenet121 squeezenet1_0 "
          "mobilenet_v2 mobilenet_v3_small mobilenet_v3_large mnasnet0_5 shufflenet_v2_x0_5 shufflenet_v2_x1_0 "
          "efficientnet_b0 efficientnet_v2_s regnet_y_400mf convnext_tiny vit_b_16 swin_t").split()


def with_loss(name):
    import torch
    import torchvision

    class WithLoss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = torchvision.models.get_model(name, weights=None)

        def forward(self, images, labels):
            return torch.nn.functional.cross_entropy(self.model(images), labels)

    return WithLoss().train()


def seen_by_hooks(model, inputs):
    """(count, bytes) of the unique storages that hooks see and that are still kept when the forward ends."""
    import torch
    known = {t.untyped_storage().data_ptr() for t in [*model.parameters(), *model.buffers()]}
    kept = {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = model(*inputs)
    storages = {at: t.untyped_storage().nbytes() for at, t in kept.items() if at and at not in known}
    del loss
    return len(storages), sum(storages.values())


def profiled(metaprof, model, inputs):
    import torch
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.pt2"
        torch.export.save(torch.export.export(model, inputs, strict=False), path)
        out = subprocess.run([metaprof, "profile", path, "--device", "cpu", "--steps", "1", "--optimizer", "none",
                              "--json", "-"], check=False, capture_output=True, text=True)
    if out.returncode == 2:
        sys.exit(out.stderr)
    saved = json.loads(out.stdout)["saved"]
    return saved["count"], saved["bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("metaprof")
    parser.add_argument("models", nargs="*", metavar="MODEL")
    arguments = parser.parse_args()
    import torch
    torch.manual_seed(0)
    unequal = 0
    for name in arguments.models or MODELS:
        model = with_loss(name)
        inputs = (torch.randn(2, 3, 224, 224), torch.randint(0, 1000, (2,)))
        hooks, ours = seen_by_hooks(model, inputs), profiled(arguments.metaprof, model, inputs)
        unequal += hooks != ours
        print(f"{name:20} hooks {hooks[0]:4} {hooks[1]:11}  metaprof {ours[0]:4} {ours[1]:11}"
              f"{'' if hooks == ours else '  differs'}", flush=True)
    print(f"{unequal} of {len(arguments.models or MODELS)} differ")
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main())
