#!/usr/bin/env python3
"""Measure what training steps do to GPU memory, for `metaprof check MODEL.pt2 --against MEASUREMENT.json`.

Needs PyTorch and a CUDA device, nothing else. It reads the allocator's statistics between the parts of a step and
changes nothing of what the model does. A whole step plan, of a function that returns a module and its inputs (the
module's forward returns the loss):

    record_pytorch.py my_models:resnet18 --out resnet18.json --device h100 --precision amp-bf16 --optimizer adamw

Or around a training loop of one's own:

    from record_pytorch import Recorder
    recorder = Recorder("resnet18", device="h100", precision="fp32", optimizer="adamw", steps=2)
    with recorder.phase("setup"):
        model.to("cuda"); x = x.to("cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(2):
        with recorder.phase("forward", step):   loss = model(x)
        with recorder.phase("backward", step):  loss.backward()
        with recorder.phase("optimizer", step): optimizer.step()
        with recorder.phase("zero_grad", step): optimizer.zero_grad()
    recorder.write("resnet18.json", model, [x])

With --events (events=True) the requests and releases are kept as well, in resnet18.log.gz: check then names the first
that differs. `out` must not exist before; free memory (other processes, other tensors) is best left alone meanwhile.
"""
import argparse
import contextlib
import gzip
import importlib
import json
import os
import pathlib
import sys

BYTES = ("allocated_bytes", "requested_bytes", "active_bytes", "reserved_bytes", "inactive_split_bytes")
COUNTS = ("allocation", "segment")
OPTIMIZERS = {
    "none": None, "sgd": ("SGD", {}), "sgd-momentum": ("SGD", {"momentum": 0.9}), "adam": ("Adam", {}),
    "adamw": ("AdamW", {}), "rmsprop": ("RMSprop", {}), "adagrad": ("Adagrad", {}), "adadelta": ("Adadelta", {}),
    "adamax": ("Adamax", {}), "nadam": ("NAdam", {}), "radam": ("RAdam", {}),
}
MOST_EVENTS = 10_000_000


class Recorder:
    """Statistics of the allocator for each part of a step. `options` are the words of `metaprof profile`."""

    def __init__(self, model, device, events=False, **options):
        conf = os.environ.get("PYTORCH_ALLOC_CONF", os.environ.get("PYTORCH_CUDA_ALLOC_CONF", ""))
        self.config = {"model": model, "device": device, "precision": "fp32", "optimizer": "none", "steps": 1,
                       "alloc_conf": conf, "memory_mib": None} | options
        self.events = events
        self.phases, self.lines, self.seen = [], [], 0
        if events:
            import torch
            torch.cuda.memory._record_memory_history("all", context=None, max_entries=MOST_EVENTS)

    @contextlib.contextmanager
    def phase(self, name, step=None, micro=None):
        import torch
        place = {"phase": name} | ({} if step is None else {"step": step}) | ({} if micro is None else {"micro": micro})
        self.take_events()  # between two phases: of neither
        self.lines.append("# " + " ".join(str(word) for pair in place.items() for word in pair))
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        try:
            yield
        except torch.OutOfMemoryError as error:
            place["out_of_memory"] = str(error).split("\n")[0]
            raise
        finally:
            torch.cuda.synchronize()
            stats = torch.cuda.memory_stats()
            for key in BYTES + COUNTS:
                place[key] = {which: stats.get(f"{key}.all.{which}", 0) for which in ("current", "peak")}
            self.phases.append(place)
            self.take_events()

    def take_events(self):
        if not self.events:
            return
        import torch
        trace = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
        self.lines += lines_of(trace[self.seen:])
        self.seen = len(trace)

    def write(self, out, module, inputs):
        """Writes the measurement; `inputs`: the tensors that the model is called with."""
        import torch
        out = pathlib.Path(out)
        device = torch.cuda.get_device_properties(torch.cuda.current_device())
        parameters = list(module.parameters())
        measurement = {
            "format": 1, "id": out.stem, "config": self.config, "torch": torch.__version__,
            "cudnn": torch.backends.cudnn.version(), "device": device.name, "device_memory": device.total_memory,
            "emulated": "libmetaprof-emulator" in os.environ.get("LD_PRELOAD", ""),
            "parameters": {"tensors": len(parameters), "trainable": sum(p.requires_grad for p in parameters),
                           "bytes": sum(p.numel() * p.element_size() for p in parameters)},
            "inputs": [{"shape": list(x.shape), "dtype": str(x.dtype).removeprefix("torch.")} for x in inputs],
            "peak": {key: max(p[key]["peak"] for p in self.phases) for key in BYTES[:4]},
            "phases": self.phases,
        }
        out.write_text(json.dumps(measurement, indent=1) + "\n")
        if self.events:
            with gzip.open(out.with_suffix(".log.gz"), "wt") as log:
                log.write("\n".join(self.lines) + "\n")
        return measurement


def lines_of(trace):
    """The allocator's history as lines: + ADDRESS BYTES [sSTREAM], - ADDRESS; c: free later than it was let go.

    Addresses are the lower 40 bits, as `metaprof allocator --replay` expects them."""
    lines, streams = [], {0: 0}
    for i, event in enumerate(trace):
        action, address = event["action"], event.get("addr", 0) & (1 << 40) - 1
        number = streams.setdefault(event.get("stream", 0), len(streams))
        stream = f" s{number}" if number else ""
        if action == "alloc":
            lines.append(f"+ {address:x} {event['size']}{stream}")
        elif action == "free_requested":
            lines.append(f"- {address:x}")
        elif action == "free_completed":
            before = trace[i - 1] if i else {}
            if before.get("action") != "free_requested" or before.get("addr") != event.get("addr"):
                lines.append(f"c {address:x}")
        elif action in ("segment_alloc", "segment_free", "segment_map", "segment_unmap"):
            letter = {"segment_alloc": "S", "segment_free": "R", "segment_map": "M", "segment_unmap": "U"}[action]
            lines.append(f"{letter} {address:x} {event['size']}{stream if letter in 'SM' else ''}")
        elif action == "oom":
            lines.append(f"! oom {event['size']}")
    return lines


def make_optimizer(options, parameters):
    import torch
    if OPTIMIZERS[options.optimizer] is None:
        return None
    name, arguments = OPTIMIZERS[options.optimizer]
    implementation = {"default": {}, "foreach": {"foreach": True}, "for-loop": {"foreach": False}, "fused": {"fused": True}}
    return getattr(torch.optim, name)(parameters, lr=1e-3, **arguments, **implementation[options.optimizer_impl])


def run_steps(options):
    import torch
    file, _, function = options.model.partition(":")
    sys.path.insert(0, ".")
    module, inputs = getattr(importlib.import_module(file), function)()
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(options.precision)
    if dtype:
        module = module.to(dtype)
        inputs = [x.to(dtype) if x.is_floating_point() else x for x in inputs]
    autocast = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}.get(options.precision)
    recorder = Recorder(function, options.device, events=options.events, precision=options.precision,
                        optimizer=options.optimizer, optimizer_impl=options.optimizer_impl, steps=options.steps)
    with recorder.phase("setup"):
        module.to("cuda")
        inputs = [x.to("cuda") for x in inputs]
    optimizer = make_optimizer(options, [p for p in module.parameters() if p.requires_grad])
    scaler = torch.amp.GradScaler("cuda") if options.precision == "amp-fp16" else None
    for step in range(options.steps):
        with recorder.phase("forward", step), torch.autocast("cuda", autocast, enabled=autocast is not None):
            loss = module(*inputs)
        with recorder.phase("backward", step):
            (scaler.scale(loss) if scaler else loss).backward()
        if not optimizer:
            continue
        with recorder.phase("optimizer", step):
            if scaler:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
        with recorder.phase("zero_grad", step):
            optimizer.zero_grad()
    return recorder, module, inputs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="FILE:FUNCTION", help="returns a module and the list of its inputs, on the CPU")
    parser.add_argument("--out", required=True, metavar="FILE.json")
    parser.add_argument("--device", required=True, help="as `metaprof profile --device` names it")
    parser.add_argument("--precision", default="fp32", choices=["fp32", "bf16", "fp16", "amp-bf16", "amp-fp16"])
    parser.add_argument("--optimizer", default="adamw", choices=sorted(OPTIMIZERS))
    parser.add_argument("--optimizer-impl", default="default", choices=["default", "foreach", "for-loop", "fused"])
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--events", action="store_true", help="keep the requests and releases, too")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("record_pytorch.py: PyTorch is not installed in this Python")
    if not torch.cuda.is_available():
        sys.exit("record_pytorch.py: PyTorch sees no CUDA device")
    if pathlib.Path(options.out).exists():
        sys.exit(f"record_pytorch.py: {options.out} exists already")
    recorder, module, inputs = run_steps(options)
    measurement = recorder.write(options.out, module, inputs)
    print(f"{options.out}: peak {measurement['peak']['allocated_bytes']:,} B allocated, "
          f"{measurement['peak']['reserved_bytes']:,} B reserved")


if __name__ == "__main__":
    main()
