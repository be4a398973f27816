#!/usr/bin/env python3
"""Runs the programs of examples/run and writes what `metaprof run` says of each into docs/evidence/transcripts.md.

    run_examples.py METAPROF PYTHON [--only WORD]... [--timm train.py]

METAPROF is the program, PYTHON one with PyTorch and the libraries that the programs use. The page has a transcript for each entry of RUNS
between its marks; --only runs those whose names have the word, the others stay as they are. timm's package has not its train.py, which
is in its repository: without --timm its transcript stays. A transcript is the command and its report
without the table of modules and the tensors at the peak. A program that does not end with status 0 is an error, and the page is not written.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/evidence/transcripts.md"
BEGIN, END = "<!-- transcripts: begin -->\n", "<!-- transcripts: end -->\n"
MOST_PHASES = 14
LEFT_OUT = ("Modules", "Largest tensors")
DRIVER = "an emulated device has no driver"

TIMM = "timm's train.py"

# name, what is run before it, the words after `metaprof run`
RUNS = [
    ("Hugging Face Trainer, LoRA, checkpointed layers, bf16", "", "--steps 2 -- python trainer_lora.py"),
    ("TRL: DPO with a reference model", "", "--steps 2 -- python dpo.py"),
    ("TRL's console script: supervised fine-tuning", "python small_model.py small",
     "--steps 2 -- trl sft --model_name_or_path small --dataset_name small/texts --output_dir out --per_device_train_batch_size 4 "
     "--max_length 128 --report_to none"),
    (TIMM, "python small_images.py images",
     "--steps 3 -- python train.py images --model convnext_atto --num-classes 2 -b 4 --epochs 1 --amp --workers 2 --img-size 64"),
    ("torchvision: Faster R-CNN, sizes that follow from data", "", "--steps 2 -- python detection.py"),
    ("DDP with NCCL, 2 ranks", "", "--gpus 2 --steps 2 -- torchrun --standalone --nproc-per-node 2 ddp.py"),
    ("DDP with NCCL, 8 ranks", "", "--gpus 8 --steps 2 -- torchrun --standalone --nproc-per-node 8 ddp.py"),
    ("accelerate launch, 2 ranks", "", "--gpus 2 --steps 2 -- accelerate launch --num_processes 2 --multi_gpu --main_process_port 29655 accelerated.py"),
    ("FSDP2, one rank of 64", "", "--world-size 64 --rank 3 --gpus 8 --steps 2 -- python fsdp2.py"),
    ("Tensor parallel", "", "--gpus 2 --steps 2 -- torchrun --standalone --nproc-per-node 2 tensor_parallel.py"),
    ("Pipeline, 1F1B", "", "--gpus 2 --steps 2 -- torchrun --standalone --nproc-per-node 2 pipeline.py"),
    ("DeepSpeed ZeRO-3", "", "--gpus 2 -- deepspeed --num_gpus 2 --master_port 29656 zero3.py"),
    ("bitsandbytes: 8-bit Adam", "", "-- python adam8bit.py"),
    ("torch.compile with Inductor", "", "--steps 2 -- python compiled.py"),
    ("A DataLoader with workers and pinned memory", "", "--steps 2 -- python data_loader.py"),
    ("Activations and parameters on the host", "", "--steps 2 -- python offload.py"),
    ("An autograd function of its own", "", "--steps 2 -- python autograd_function.py"),
    ("The same in a notebook", "python as_notebook.py autograd_function.py step.ipynb", "-- jupyter nbconvert --to notebook --execute step.ipynb"),
    ("Linear layers in 8-bit floats", "", "--steps 2 -- python float8_linear.py"),
    ("A GAN with two optimizers", "", "--steps 2 -- python gan.py"),
    ("A mixture of experts, chosen equally often", "", "--assume even --steps 2 -- python moe.py"),
]


def parts_of(report):
    """The verdict and what follows, by blank lines."""
    lines = report.splitlines()
    first = next((number for number, line in enumerate(lines) if re.match(r"(FITS|DOES NOT FIT|OUT OF MEMORY)", line)), None)
    if first is None:
        sys.exit("the report has no verdict:\n" + report[-2000:])
    return "\n".join(lines[first:]).split("\n\n")


def shortened(report):
    kept = []
    for part in parts_of(report):
        lines = part.splitlines()
        if not lines or lines[0].startswith(LEFT_OUT):
            continue
        if lines[0] == "Phases":
            rest = len(lines) - 3 - MOST_PHASES
            lines = lines[:3 + MOST_PHASES] + ([f"… {rest} more rows"] if rest > 0 else [])
        elif lines[0] == "Peak":
            lines = lines[:2]
        lines = [line.rstrip() for line in lines if not line.startswith(DRIVER)]
        if lines:
            kept.append("\n".join(lines))
    return "\n\n".join(kept)


def transcript(metaprof, libraries, folder, before, words):
    """`libraries`: the folder of the Python, which is shown as .venv."""
    if before:
        subprocess.run(before, shell=True, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    done = subprocess.run(f"{metaprof} run {words}", shell=True, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"metaprof run {words}: status {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}")
    commands = ([f"$ {before}"] if before else []) + [f"$ metaprof run {words}"]
    text = "\n".join(commands) + "\n" + shortened(done.stdout)
    text = text.replace(str(folder) + "/", "").replace(f"{libraries}/", ".venv/")
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())


def sections_of(page):
    """The transcripts that the page has, by name."""
    found = re.split(r"^### (.*)\n\n", page.partition(BEGIN)[2].partition(END)[0], flags=re.M)
    return {name: text.rstrip("\n") + "\n" for name, text in zip(found[1::2], found[2::2])}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("metaprof")
    parser.add_argument("python", type=pathlib.Path)
    parser.add_argument("--only", action="append")
    parser.add_argument("--timm", type=pathlib.Path)
    options = parser.parse_args()
    metaprof = str(pathlib.Path(options.metaprof).resolve())
    programs = options.python.absolute().parent
    os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
    page = PAGE.read_text(encoding="utf-8")
    sections = sections_of(page)
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work) / "run"
        shutil.copytree(ROOT / "examples/run", folder)
        if options.timm:
            shutil.copy(options.timm, folder / "train.py")
        for name, before, words in RUNS:
            if options.only and not any(word in name for word in options.only) or name == TIMM and not options.timm:
                continue
            sections[name] = transcript(metaprof, programs.parent, folder, before, words)
            print(name, flush=True)
            text = "".join(f"### {one}\n\n{sections[one]}\n" for one, _, _ in RUNS if one in sections)
            page = page.partition(BEGIN)[0] + BEGIN + text + END + page.partition(END)[2]
            PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
