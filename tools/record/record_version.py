#!/usr/bin/env python3
"""Exports the programs of version_programs.py, records their training steps with the PyTorch that runs this, and compares.

usage: record_version.py FOLDER [--framework KNOWN] [PROGRAM...]
       record_version.py train PROGRAM [--precision P] [--optimizer O]

tools/record/record_version.sh runs it with all programs. Writes NAME.pt2, without weights, and of each run RUN.json and RUN.log.gz: what
`metaprof run` (METAPROF names the program) says of it on the emulated device. Prints what `metaprof check` says of them.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys

import torch

import version_programs

METAPROF = os.environ.get("METAPROF", "metaprof")


def export(name, folder):
    with torch.device("meta"):
        module, inputs = getattr(version_programs, name)()
    program = torch.export.export(module, tuple(inputs), strict=False)
    for graph in program.graph_module.modules():
        for node in getattr(graph, "graph", ()) and graph.graph.nodes:
            node.meta.pop("from_node", None)
            if trace := node.meta.get("stack_trace"):  # no paths of this machine
                node.meta["stack_trace"] = re.sub(r'File "[^"]*?([^"/]+/)?([^"/]+)"', r'File "\1\2"', trace)
    torch.export.save(program, str(folder / f"{name}.pt2"))


def train(name, precision="fp32", optimizer="adamw"):
    """Three steps, as people write them."""
    module, inputs = getattr(version_programs, name)()
    if precision in ("bf16", "fp16"):
        dtype = torch.bfloat16 if precision == "bf16" else torch.float16
        module, inputs = module.to(dtype), [x.to(dtype) if x.is_floating_point() else x for x in inputs]
    autocast = torch.bfloat16 if precision == "amp-bf16" else None
    module.to("cuda")
    inputs = [x.to("cuda") for x in inputs]
    kind = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}[optimizer]
    optimizer = kind(module.parameters(), lr=1e-3)
    for _ in range(3):
        with torch.autocast("cuda", autocast, enabled=autocast is not None):
            loss = module(*inputs)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def record(run, name, options, folder):
    command = [METAPROF, "run", "--device", "h200", "--workspaces", "none", "--json", folder / f"{run}.json", "--events", "--",
               sys.executable, __file__, "train", name, *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"METAPROF_RECORD_UNKNOWN": "1"})


def check(run, name, options, folder, known):
    command = [METAPROF, "check", folder / f"{name}.pt2", "--against", folder / f"{run}.json", "--workspaces", "none", "--tolerance", "0%", *options, *known]
    if subprocess.run(command, check=False).returncode > 1:  # 1: something differs, which is what this program is for
        sys.exit(2)


def main():
    if sys.argv[1:2] == ["train"]:
        return train(sys.argv[2], **{option.removeprefix("--"): value for option, value in zip(sys.argv[3::2], sys.argv[4::2])})
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--framework")
    parser.add_argument("programs", nargs="*")
    asked = parser.parse_args()
    known = ["--framework", asked.framework] if asked.framework else []
    for name in asked.programs or version_programs.RUNS:
        try:
            export(name, asked.folder)
        except Exception as error:  # a version may be unable to export a program; its runs still say something
            print(f"{name}: no export: {str(error).splitlines()[0]}", file=sys.stderr)
        for run, options in version_programs.RUNS[name]:
            record(run, name, options, asked.folder)
            if (asked.folder / f"{name}.pt2").exists():
                check(run, name, options, asked.folder, known)


if __name__ == "__main__":
    main()
