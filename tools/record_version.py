#!/usr/bin/env python3
"""Exports the programs of version_programs.py and records their training steps with the PyTorch that runs this.

usage: record_version.py FOLDER [PROGRAM...]

tools/record_version.sh runs it on the emulated device, with all programs. Writes NAME.pt2, without weights, and
RUN.json.
"""
import os
import pathlib
import re
import sys

import torch

import record_pytorch
import version_programs

HERE = pathlib.Path(__file__).resolve().parent


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


def record(arguments):
    """In a process of its own, which begins with an empty device; PyTorch is imported once for all."""
    child = os.fork()
    if child == 0:
        sys.argv = ["record_pytorch.py", *map(str, arguments)]
        try:
            record_pytorch.main()
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.waitpid(child, 0)


def main():
    folder, names = pathlib.Path(sys.argv[1]), sys.argv[2:] or list(version_programs.RUNS)
    for name in names:
        for run, options in version_programs.RUNS[name]:
            out = folder / f"{run}.json"
            out.unlink(missing_ok=True)
            record([f"version_programs:{name}", "--out", out, "--device", "h200", *options])
    for name in names:
        try:
            export(name, folder)
        except Exception as error:  # a version may be unable to export a program; its runs still say something
            print(f"{name}: no export: {str(error).splitlines()[0]}", file=sys.stderr)


if __name__ == "__main__":
    main()
