#!/usr/bin/env python3
"""Exports of models of libraries that contain attention, made on the CPU and on meta, beside runs of the same steps on an emulated device.

    check_exports.py METAPROF PYTHON OUT.csv NAME... [--by torch]

METAPROF is the program, PYTHON one that has torch and timm or torchvision. NAME: timm:swin_tiny_patch4_window7_224, torchvision:vit_b_16. Each is exported by
metaprof.export, or with `--by torch` by torch.export, and trained for two steps of SGD, with two images. Models that OUT.csv already has are left out. A row: the model, the device of the export, phases,
those that are equal, errors of the peaks in allocated and reserved bytes; or why there is none.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def made(name):
    """The module with its loss, and its inputs, on the default device."""
    import torch

    library, _, model = name.partition(":")
    if library == "timm":
        import timm
        net = timm.create_model(model)
        size = net.default_cfg["input_size"]
    else:
        import torchvision
        net, size = torchvision.models.get_model(model), (3, 224, 224)

    class Loss(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, x, labels):
            found = self.net(x)
            return torch.nn.functional.cross_entropy(found[0] if isinstance(found, (tuple, list)) else found, labels)

    return Loss(), (torch.rand(2, *size), torch.zeros(2, dtype=torch.int64))


def export(name, device, path, by):
    sys.path.insert(0, str(HERE.parents[1] / "python"))
    import metaprof
    import torch

    with torch.device(device):
        module, inputs = made(name)
    if by == "torch":
        torch.export.save(torch.export.export(module, inputs, strict=False), path)
    else:
        metaprof.export(module, inputs, path)


def train(name):
    import torch

    module, inputs = made(name)
    module.to("cuda")
    inputs = [x.to("cuda") for x in inputs]
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)
    for _ in range(2):
        loss = module(*inputs)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def rows_of(options, name, work):
    report = work / "run.json"
    run = subprocess.run([options.metaprof, "run", "--device", "h200", "--json", report, "--events", "--", options.python, __file__, "--train", name],
                         capture_output=True, text=True)
    if run.returncode:
        return [["", "", "", "", "", (run.stderr.strip().splitlines() or ["the run failed"])[-1]]]
    rows = []
    for device in "cpu", "meta":
        exported = work / "model.pt2"
        made_it = subprocess.run([options.python, __file__, "--export", name, device, exported, options.by], capture_output=True, text=True)
        if made_it.returncode:
            rows.append([device, "", "", "", "", made_it.stderr.strip().splitlines()[-1]])
            continue
        check = subprocess.run([options.metaprof, "check", exported, "--optimizer", "sgd", "--against", report, "--json", "-"], capture_output=True, text=True)
        if not check.stdout:
            rows.append([device, "", "", "", "", check.stderr.strip()])
            continue
        found = json.loads(check.stdout)["summary"][0]
        rows.append([device, found["phases"], found["exact_phases"], found["peak_allocated_error"], found["peak_reserved_error"], ""])
    return rows


def main():
    if sys.argv[1] == "--export":
        return export(*sys.argv[2:])
    if sys.argv[1] == "--train":
        return train(sys.argv[2])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for word in "metaprof", "python":
        parser.add_argument(word)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--by", choices=["metaprof", "torch"], default="metaprof")
    options = parser.parse_args()
    done = set()
    if options.out.exists():
        with open(options.out, newline="") as file:
            done = {row["model"] for row in csv.DictReader(file)}
    with open(options.out, "a", newline="") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow(["model", "exported on", "phases", "equal", "allocated", "reserved", "why"])
        for name in options.names:
            if name in done:
                continue
            with tempfile.TemporaryDirectory() as folder:
                for row in rows_of(options, name, pathlib.Path(folder)):
                    writer.writerow([name, *row])
                    file.flush()


if __name__ == "__main__":
    sys.exit(main())
