#!/usr/bin/env python3
"""Makes the files beside it: twenty runs of the self-test's programs on emulated devices, and each again with --real within an emulated run, which
stands in for a GPU.

usage: METAPROF=build/release/cli/metaprof make.py PYTHON [NAME...]

Of NAME: NAME.mp (the captured program), emulated/NAME.json and real/NAME.json with their logs (NAME.log.gz). Members of the reports that no
comparison reads are left out, and so are this machine's folders.
"""
import gzip
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE.parents[2] / "capture/recorder/selftest/programs"
METAPROF = os.environ["METAPROF"]
RUNS = {path.stem: (path.stem, "h200", "") for path in sorted(PROGRAMS.glob("*.py"))} | {
    "mlp_sgd.rtx4090": ("mlp_sgd", "rtx4090", ""),
    "conv_adamw.a100": ("conv_adamw", "a100", ""),
    "attention_bf16.l40s": ("attention_bf16", "l40s", ""),
    "lstm.t4": ("lstm", "t4", ""),
    "encoder_checkpoint.h100.expandable": ("encoder_checkpoint", "h100", "expandable_segments:True"),
    "optimizers.b200": ("optimizers", "b200", ""),
    "accumulation_clip.a100.split": ("accumulation_clip", "a100", "max_split_size_mb:32"),
    "prefetch_stream.rtx4090.expandable": ("prefetch_stream", "rtx4090", "expandable_segments:True"),
}
RANK = ("rank", "device", "device_title", "device_memory", "alloc_conf", "models", "phases", "out_of_memory")
REPORT = ("schema", "schema_version", "framework", "device", "device_memory", "emulated", "exit_status")


def run(words, check=True):
    subprocess.run([str(word) for word in words], check=check, stdout=subprocess.DEVNULL, stderr=None if check else subprocess.DEVNULL)


def strip(file):
    report = json.loads(file.read_text())
    ranks = [{key: rank[key] for key in RANK} for rank in report["ranks"]]
    for rank in ranks:
        for phase in rank["phases"]:
            del phase["seconds"]
    text = json.dumps({key: report[key] for key in REPORT} | {"ranks": ranks}, separators=(",", ":"))
    file.write_text(text.replace(f"{PROGRAMS}/", "") + "\n")


def make(python, name):
    program, device, conf = RUNS[name]
    options = ["--device", device, "--workspaces", "none"]
    conf = ["--alloc-conf", conf] if conf else []
    command = ["--", python, PROGRAMS / f"{program}.py"]
    saved = HERE / f"{name}.mp"
    for side in ("emulated", "real"):
        (HERE / side).mkdir(exist_ok=True)
        report = ["--json", HERE / side / f"{name}.json", "--events", "--detail", "100"]
        if side == "real":  # the outer run finds that no program of its own was recorded
            report[1].unlink(missing_ok=True)
            run([METAPROF, "run", *options, "--", METAPROF, "run", "--real", *conf, *report, *command], check=False)
        else:
            run([METAPROF, "run", *options, *conf, *report, "--save", saved, *command])
        strip(HERE / side / f"{name}.json")
    text = gzip.decompress(saved.read_bytes()).decode().replace(f"{PROGRAMS}/", "")
    saved.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


for name in sys.argv[2:] or RUNS:
    make(sys.argv[1], name)
    print(name, flush=True)
