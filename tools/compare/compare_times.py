#!/usr/bin/env python3
"""Measured iterations beside what `metaprof profile` says a step takes at least and is expected to take.

    tools/compare/compare_times.py METAPROF [MEASURED.csv]

MEASURED.csv is tests/data/measured/h100.csv unless given: public measurements on an H100 80GB (repository
sanketpurandare/mem-run-estimator, 2024), the models beside it. The table is Markdown; the last lines are the mean and the
largest error of what is expected, how many bounds are above what was measured, and what was another program.
"""
import csv
import json
import pathlib
import subprocess
import sys

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests/data/measured"
NORMS = "model.layers.*.input_layernorm model.layers.*.post_attention_layernorm model.norm"
# The model's file, and the modules that a row with checkpoints computes again (run_public_h100.py).
MODELS = {
    "hf_T5": ("t5/config.json", "encoder.block.*.layer.*.DenseReluDense"),
    "hf_GPT2": ("gpt2/config.json", "transformer.h.*"),
    "llama_v3_1b": ("llama/config.json", "model.layers.*.mlp " + NORMS),
    "gemma_2b": ("gemma/config.json", "model.layers.*.mlp " + NORMS),
    "hf_clip": ("clip/config.json", "vision_model.encoder.layers.* text_model.encoder.layers.*"),
    "timm_vit": ("vit_huge.pt2", "model.blocks.*"),
    "timm_convnext_v2": ("convnextv2_huge.pt2", "model.stages.*.blocks.*.mlp"),
}
# The software of 2024 ran other operators for some models than today's: where the peak of memory is further away than this from the
# measured one, the iteration is of another program, and only its bound is compared.
SAME_PROGRAM = 0.05
PRECISIONS = {"FP": "fp32", "HP": "fp16", "MP": "amp-fp16"}


def profile(metaprof, row):
    file, recomputed = MODELS[row["model"]]
    words = [metaprof, "profile", str(DATA / file), "--batch", row["batch"], "--precision", PRECISIONS[row["precision"]],
             "--optimizer", "adam", "--steps", "2", "--device", "h100", "--framework", "2.6", "--memory", "400GiB", "--workspaces", "none", "--json", "-"]
    if row["seq"]:
        words += ["--sequence", row["seq"]]
    if row["checkpoint"] == "1":
        words += ["--checkpoint", recomputed]
    run = subprocess.run(words, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"compare_times.py: {' '.join(words)}: {run.stderr.strip()}")
    report = json.loads(run.stdout)
    peak = report["peak"]["allocated_bytes"] / int(row["peak_active"]) - 1
    return sum(report["roofline_seconds"].values()), sum(report["expected_seconds"].values()), peak


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    table = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else DATA / "h100.csv"
    print("| model | batch | tokens | precision | checkpointed | measured, ms | at least, ms | expected, ms | error |")
    print("|---|--:|--:|---|---|--:|--:|--:|--:|")
    errors, above, others = [], 0, []
    for row in csv.DictReader(table.open()):
        measured = float(row["iteration_ms"])
        bound, expected, peak = profile(sys.argv[1], row)
        bound, expected, error = 1e3 * bound, 1e3 * expected, 1e3 * expected / measured - 1
        above += bound > measured
        words = [row["model"], row["batch"], row["seq"], row["precision"], "yes" if row["checkpoint"] == "1" else "",
                 f"{measured:.0f}", f"{bound:.0f}"]
        if abs(peak) > SAME_PROGRAM:
            others.append(f"{'.'.join(word for word in words[:4] if word)} ({100 * peak:+.0f} %)")
            continue
        errors.append(error)
        print("| " + " | ".join([*words, f"{expected:.0f}", f"{100 * error:+.0f} %"]) + " |")
    absolute = [abs(error) for error in errors]
    print(f"\nmean error {100 * sum(absolute) / len(absolute):.1f} %, largest {100 * max(absolute):.0f} %, of {len(absolute)} iterations; "
          f"bounds above what was measured: {above} of {len(errors) + len(others)}")
    print("other programs than those that were measured, by their peaks: " + ", ".join(others))


if __name__ == "__main__":
    main()
