#!/usr/bin/env python3
"""Repeats recorded training steps on the emulated device and compares them with the recordings.

usage: compare_recordings.py --python VENV/bin/python --emulator BUILD/emulator/lib --shared FOLDER [ID...]

FOLDER has tools/record_model.py and recordings/models/ID.json. Without IDs a small set is taken that covers what the
libraries answer: workspaces, convolutions, attention, recurrent networks, out of memory, virtual memory, other devices.
Every phase must equal its recording in all statistics of the allocator; with --log every line, addresses included.
Prints a line per configuration and exits with 1 if one differs.
"""
import argparse, collections, gzip, json, os, pathlib, subprocess, sys, tempfile

# What docs/explanation/emulator.md says a description needs; `memory` comes from the recording.
DEVICES = {
    "h200": "title=NVIDIA H200;sm=90;multiprocessors=132;threads_per_multiprocessor=2048;shared_memory_per_block=232448;l2_cache=62914560",
    "h100": "title=NVIDIA H100 80GB HBM3;sm=90;multiprocessors=132;threads_per_multiprocessor=2048;shared_memory_per_block=232448",
    "a100": "title=NVIDIA A100-SXM4-80GB;sm=80;multiprocessors=108;threads_per_multiprocessor=2048;shared_memory_per_block=166912",
    "l40s": "title=NVIDIA L40S;sm=89;multiprocessors=142;threads_per_multiprocessor=1536;shared_memory_per_block=101376",
    "rtx4090": "title=NVIDIA GeForce RTX 4090;sm=89;multiprocessors=128;threads_per_multiprocessor=1536;shared_memory_per_block=101376",
    "t4": "title=Tesla T4;sm=75;multiprocessors=40;threads_per_multiprocessor=1024;shared_memory_per_block=65536",
}
SMALL = """resnet18 gpt2 bert-base lstm-lm tiny-llama densenet121.mem2600 gpt2.mem3200 gpt2.mem1000
    gpt2.expandable-segments-true gpt2.expandable-segments-true.mem4900 resnet50.mem1500 gpt2.amp-bf16.a100""".split()


def run(options, head, out):
    config = head["config"]
    description = f"name={config['device']};memory={head['device_memory']};{DEVICES[config['device']]}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("METAPROF_EMULATOR")}
    environment |= config["env"] | {
        # record_model.py looks for "libcudart" in it
        "LD_PRELOAD": f"{options.emulator}/libmetaprof-emulator.so:{options.emulator}/libcudart.so.13",
        "METAPROF_EMULATOR_DEVICE": description,
        "OPLOG_BUILD": str(options.scratch / "oplog"),
        "CUDA_HOME": str(options.cuda),
        "HF_HUB_OFFLINE": "1",
    }
    if config["alloc_conf"]:
        environment["PYTORCH_ALLOC_CONF"] = environment["PYTORCH_CUDA_ALLOC_CONF"] = config["alloc_conf"]
    given = {key: value for key, value in config.items() if key not in ("checkpointed", "device", "memory_mib")}
    given |= {"device": config["device"], "memory_mib": config["memory_mib"]}
    command = [options.python, options.shared / "tools/record_model.py", "--config", json.dumps(given), "--out", out]
    if not options.log:
        command += ["--no-log"]
    result = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)
    written = list(pathlib.Path(out).glob("*.json"))
    if not written:
        return None, (result.stderr.strip().splitlines() or ["nothing was written"])[-1]
    return json.loads(written[0].read_text()), None


def first_difference(recorded, seen):
    if len(recorded) != len(seen):
        return f"{len(seen)} phases, recorded {len(recorded)}"
    for old, new in zip(recorded, seen):
        for key in old:
            if key != "out_of_memory" and old[key] != new.get(key):
                return f"{old['phase']} {old.get('step', '')} {key}: {new.get(key)}, recorded {old[key]}"
        if ("out_of_memory" in old) != ("out_of_memory" in new):
            return f"{old['phase']}: out of memory: {new.get('out_of_memory')}, recorded {old.get('out_of_memory')}"
    return None


def comparable(lines):
    """Frees that follow each other may come in any order: a run of them is a set."""
    run = []
    for line in lines:
        if line.startswith("- "):
            run.append(line)
            continue
        yield from sorted(run)
        run = []
        yield line
    yield from sorted(run)


def first_different_line(recorded, seen):
    old, new = (list(comparable(gzip.open(path, "rt").read().splitlines())) for path in (recorded, seen))
    for number, (a, b) in enumerate(zip(old, new), start=1):
        if a != b:
            return f"line {number}: {b!r}, recorded {a!r}"
    return None if len(old) == len(new) else f"{len(new)} lines, recorded {len(old)}"


def compare(options, name):
    recorded = options.recordings / f"{name}.json"
    head = json.loads(recorded.read_text())
    with tempfile.TemporaryDirectory() as out:
        seen, failure = run(options, head, out)
        if failure:
            return f"failed: {failure}"
        difference = first_difference(head["phases"], seen["phases"])
        if difference or not options.log:
            return difference
        log = recorded.with_suffix("").with_name(f"{name}.log.gz")
        return first_different_line(log, next(pathlib.Path(out).glob("*.log.gz"))) if log.exists() else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--python", required=True)
    parser.add_argument("--emulator", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--shared", required=True, type=pathlib.Path)
    parser.add_argument("--recordings", type=pathlib.Path, help="default: SHARED/recordings/models")
    parser.add_argument("--cuda", type=pathlib.Path, help="a folder whose include/ has CUDA's headers, for record_model.py")
    parser.add_argument("--scratch", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "metaprof-emulator")
    parser.add_argument("--all", action="store_true", help="every recording")
    parser.add_argument("--log", action="store_true", help="compare every event and address, too")
    options = parser.parse_args()
    options.recordings = options.recordings or options.shared / "recordings/models"
    if options.all:
        options.ids = sorted(path.stem for path in options.recordings.glob("*.json"))
    results = collections.Counter()
    for name in options.ids or SMALL:
        difference = compare(options, name)
        results["different" if difference else "equal"] += 1
        print(f"{name}: {difference or 'equal'}", flush=True)
    print(f"{results['equal']} equal, {results['different']} different")
    sys.exit(1 if results["different"] else 0)


if __name__ == "__main__":
    main()
