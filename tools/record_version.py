#!/usr/bin/env python3
"""Exports the programs of version_programs.py and records their training steps with the PyTorch that runs this.

usage: record_version.py FOLDER

tools/record_version.sh runs it on the emulated device. Writes NAME.pt2, without weights, and RUN.json.
"""
import pathlib
import re
import subprocess
import sys

import version_programs

HERE = pathlib.Path(__file__).resolve().parent


def export(name, folder):
    import torch
    with torch.device("meta"):
        module, inputs = getattr(version_programs, name)()
    program = torch.export.export(module, tuple(inputs), strict=False)
    for graph in program.graph_module.modules():
        for node in getattr(graph, "graph", ()) and graph.graph.nodes:
            node.meta.pop("from_node", None)
            if trace := node.meta.get("stack_trace"):  # no paths of this machine
                node.meta["stack_trace"] = re.sub(r'File "[^"]*?([^"/]+/)?([^"/]+)"', r'File "\1\2"', trace)
    torch.export.save(program, str(folder / f"{name}.pt2"))


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, runs in version_programs.RUNS.items():
        try:
            export(name, folder)
        except Exception as error:  # a version may be unable to export a program; its runs still say something
            print(f"{name}: no export: {str(error).splitlines()[0]}", file=sys.stderr)
        for run, options in runs:
            out = folder / f"{run}.json"
            out.unlink(missing_ok=True)
            command = [sys.executable, HERE / "record_pytorch.py", f"version_programs:{name}", "--out", out, "--device",
                       "h200", *options]
            subprocess.run([str(word) for word in command], cwd=HERE, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
