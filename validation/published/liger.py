#!/usr/bin/env python3
"""Repeats the memory rows of Liger-Kernel's published benchmarks on the emulated device.

    liger.py --clone Liger-Kernel --python PYTHON --metaprof METAPROF      runs every row that has no estimate yet
    liger.py ... --kernels tvd,rope                                       these rows anew

CLONE is a git clone of github.com/linkedin/Liger-Kernel. PYTHON has a PyTorch built with CUDA, and transformers. liger.csv has a row
for each published number: what was run, on which card, with the script of which commit. The script itself runs under `metaprof
run`, asks `torch.cuda.max_memory_allocated` and prints MiB, as it did on the card. Only what it does with time is replaced. The column
`estimated` is what it printed here, `torch` the version that it ran with, `reason` why a row has no estimate.
"""
import argparse
import collections
import csv
import json
import os
import pathlib
import subprocess
import sys

TABLE = pathlib.Path(__file__).with_name("liger.csv")
KEY = ("kernel", "provider", "mode", "x", "extra")
DEVICES = {
    "NVIDIA A100-SXM4-80GB": "a100", "NVIDIA H100 80GB HBM3": "h100", "NVIDIA H100 PCIe": "h100-pcie", "NVIDIA B200": "b200",
    "NVIDIA GeForce RTX 3090": "rtx3090", "NVIDIA GeForce RTX 4090": "rtx4090",
}


def normal(config):
    """A configuration as text that compares equal."""
    return json.dumps(json.loads(config), sort_keys=True)


def run_script(root, script, out, configs):
    """In the process that is recorded: the benchmark's script, with its own rows written as JSON lines."""
    import runpy
    from importlib import metadata
    sys.path[:0] = [str(root / "benchmark/scripts"), str(root / "src"), str(root)]
    version_of = metadata.version
    metadata.version = lambda name: "0" if name == "liger-kernel" else version_of(name)  # it is not installed
    import torch
    import triton.testing

    def do_bench(call, grad_to_none=None, quantiles=None, **_):
        """As often as the real one at least, and with its buffer, so that what stays from call to call is there."""
        call()
        cache = torch.empty(64_000_000, dtype=torch.int, device="cuda")
        for number in range(9):
            for tensor in (grad_to_none or ()) if number > 5 else ():
                tensor.grad = None
            cache.zero_()
            call()
        return [1.0] * len(quantiles) if quantiles and len(quantiles) > 1 else 1.0

    triton.testing.do_bench = do_bench
    import utils
    with open(out, "w", encoding="utf-8") as rows:
        def write(benchmark_data_list, *_, **__):
            for data in benchmark_data_list:
                for x, mebibytes in zip(data.x_values, data.y_values_50) if data.metric_name == "memory" else ():
                    rows.write(json.dumps([data.kernel_name, data.kernel_provider, data.kernel_operation_mode, str(float(x)),
                                           normal(data.extra_benchmark_config_str), mebibytes]) + "\n")
            rows.flush()

        def run_with_published_sizes(*arguments, **options):
            """A script of today may have other sizes than the rows were measured with."""
            own, published = options.get("extra_benchmark_configs") or [], configs.get(options.get("kernel_name"), [])
            plain = [config for config in published if own and config.keys() == own[0].keys() and
                     all(isinstance(value, (int, float)) for value in (*config.values(), *own[0].values()))]
            return run_benchmarks(*arguments, **{**options, "extra_benchmark_configs": plain or own})

        run_benchmarks, utils.run_benchmarks = utils.run_benchmarks, run_with_published_sizes
        utils.update_benchmark_data_csv, utils.sleep = write, lambda *_: None
        sys.argv = [str(root / "benchmark/scripts" / script), "--overwrite"]
        runpy.run_path(sys.argv[0], run_name="__main__")


def write_sources(clone, commit, folder):
    """The Python files of a commit."""
    listed = subprocess.run(["git", "-C", clone, "ls-tree", "-r", "--name-only", commit, "src", "benchmark", "test"], capture_output=True,
                            text=True, check=True)
    for name in listed.stdout.split("\n"):
        if name.endswith(".py"):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(subprocess.run(["git", "-C", clone, "show", f"{commit}:{name}"], capture_output=True, check=True).stdout)


def run_group(options, key, rows):
    """Fills `estimated`, `torch` and `reason` of rows of one script, commit and card."""
    commit, script, gpu = key
    folder = pathlib.Path(options.folder).resolve()
    root, out, report = folder / commit, folder / f"{commit}-{script}.jsonl", folder / f"{commit}-{script}.json"
    if not root.exists():
        write_sources(options.clone, commit, root)
    out.unlink(missing_ok=True)
    configs = collections.defaultdict(list)
    for row in rows:
        configs[row["kernel"]].append(json.loads(row["extra"]))
    done = subprocess.run(
        [options.metaprof, "run", "--device", DEVICES[gpu], "--timeout", options.timeout, "--json", report, "--", options.python,
         pathlib.Path(__file__).resolve(), "--child", root, script, out, json.dumps(configs)], capture_output=True, text=True, cwd=folder, check=False)
    printed = {}
    for line in out.read_text(encoding="utf-8").splitlines() if out.exists() else ():
        *what, mebibytes = json.loads(line)
        printed[tuple(what)] = mebibytes
    run = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {"framework": {"version": ""}, "ended_by": None}
    error = next((line for line in reversed(done.stderr.splitlines()) if "Error" in line), None)
    error = error or (f"ended by {run['ended_by']}" if run["ended_by"] else "the script does not print this row today")
    version = run["framework"]["version"]
    for row in rows:
        found = printed.get((row["kernel"], row["provider"], row["mode"], str(float(row["x"])), normal(row["extra"])))
        row["estimated"], row["torch"] = ("", "") if found is None else (found, (version or "").partition("+")[0])
        row["reason"] = error.strip()[:120] if found is None else row["reason"] if float(found) != float(row["published"]) else ""
    print(f"{script} {commit} {DEVICES[gpu]}: {sum(row['estimated'] != '' for row in rows)} of {len(rows)} rows", flush=True)


def main():
    if sys.argv[1:2] == ["--child"]:
        return run_script(pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4], json.loads(sys.argv[5]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clone", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--metaprof", required=True)
    parser.add_argument("--kernels", default="")
    parser.add_argument("--folder", default="build/published", help="for sources and what scripts print")
    parser.add_argument("--timeout", default="900", help="seconds of one script")
    options = parser.parse_args()
    pathlib.Path(options.folder).mkdir(parents=True, exist_ok=True)
    with open(TABLE, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    wanted = set(filter(None, options.kernels.split(",")))
    groups = collections.defaultdict(list)
    for row in rows:
        if row["kernel"] in wanted if wanted else not row["estimated"]:
            groups[row["commit"], row["script"], row["gpu"]].append(row)
    for key, group in sorted(groups.items()):
        run_group(options, key, group)
        with open(TABLE, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    return None


if __name__ == "__main__":
    main()
