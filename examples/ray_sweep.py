"""Thousands of candidates on the machines of a Ray cluster, a profile each.

    python examples/ray_sweep.py config.json --device rtx4090,a100 --precision fp32,amp-bf16 --batch 1:64 --csv grid.csv
    python examples/ray_sweep.py model.pt2 --workers 2          on this machine alone, with two workers
    python examples/ray_sweep.py model.pt2 --address auto       on the cluster that this machine belongs to

The model's file must be where the workers are; `pip install metaprof ray` too. Within one process `metaprof.sweep` is much
faster, as its runs share what they have in common; a row here is a program of its own.
"""

import argparse
import csv
import itertools
import sys

import ray

import metaprof

FIGURES = ("fits", "peak_allocated_bytes", "peak_reserved_bytes", "flops_forward", "flops_backward", "error")


@ray.remote
def row_of(model, options):
    """A candidate's options and figures, in bytes and FLOPs; one that cannot be run has an error."""
    try:
        result = metaprof.profile(model, **options)
    except metaprof.Error as error:
        return {**options, "error": str(error)}
    return {**options, "fits": result.fits, "peak_allocated_bytes": result.peak.allocated,
            "peak_reserved_bytes": result.peak.reserved, "flops_forward": result.flops["forward"],
            "flops_backward": result.flops["backward"]}


def values(text):
    """"1,2,4" or "1:8"."""
    if ":" in text:
        first, last = text.split(":")
        return [str(number) for number in range(int(first), int(last) + 1)]
    return text.split(",")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    names = ("device", "precision", "optimizer", "checkpoint", "sequence", "batch")
    for name in names:
        parser.add_argument(f"--{name}", type=values)
    parser.add_argument("--workers", type=int, help="of a Ray on this machine [its cores]")
    parser.add_argument("--address", help="of a running Ray")
    parser.add_argument("--csv", type=argparse.FileType("w"), default=sys.stdout)
    given = parser.parse_args()

    varied = {name: getattr(given, name) for name in names if getattr(given, name)}
    candidates = [dict(zip(varied, each)) for each in itertools.product(*varied.values())]
    if given.address:
        ray.init(given.address)
    else:
        ray.init(num_cpus=given.workers, include_dashboard=False)
    rows = ray.get([row_of.remote(given.model, options) for options in candidates])
    writer = csv.DictWriter(given.csv, [*varied, *FIGURES])
    writer.writeheader()
    writer.writerows(rows)


if __name__ == "__main__":
    main()
