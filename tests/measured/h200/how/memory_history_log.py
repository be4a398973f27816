"""The interface of oplog.py by PyTorch's own memory history: requests and frees in order, without operators."""

import torch

DT = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "b8",
    torch.complex64: "c64",
    torch.complex128: "c128",
}
text, live = [], [False]
streams = {}


def extension():
    return None


def start(inputs=False, outputs=False, host=False, device=True):
    import sys

    if device:
        torch.cuda.init()
        torch.cuda.memory_allocated()
    return sys.modules[__name__]


def drain():
    last = None
    snap = torch._C._cuda_memorySnapshot(None)
    for e in snap["device_traces"][0]:
        a = e["action"]
        at = f"{e['addr'] & 0xffffffffff:x}" if "addr" in e else ""
        s = streams.setdefault(e["stream"], len(streams))
        w = f" s{s}" if s else ""
        if a == "alloc":
            text.append(f"+ {at} {e['size']}{w}")
        elif a == "free_requested":
            text.append(f"- {at}")
            last = at
            continue
        elif a == "free_completed":
            if last != at:
                text.append(f"c {at}")
        elif a == "segment_alloc":
            text.append(f"S {at} {e['size']}{w}")
        elif a == "segment_free":
            text.append(f"R {at} {e['size']}")
        elif a == "segment_map":
            text.append(f"M {at} {e['size']}{w}")
        elif a == "segment_unmap":
            text.append(f"U {at} {e['size']}")
        elif a == "oom":
            text.append(f"! oom {e['size']}")
        else:
            continue
        last = None


def begin():
    torch.cuda.memory._record_memory_history(
        enabled="all", context=None, stacks="python", max_entries=4_000_000, clear_history=True
    )


def on(v):
    if v:
        begin()
    else:
        drain()
        torch.cuda.memory._record_memory_history(enabled=None)
    live[0] = v


def mark(s):
    if live[0] and s.startswith("phase"):
        drain()
        begin()
        text.append("# " + s)


def take():
    if live[0]:
        drain()
        begin()
    out = "\n".join(text)
    text.clear()
    return out + "\n" if out else ""


def show(t):
    if t is None:
        return "None"
    o = DT.get(t.dtype, str(t.dtype)) + "[" + ",".join(map(str, t.shape)) + "]"
    if t.layout != torch.strided:
        return o + str(t.layout)
    if not t.is_contiguous():
        o += "/" + ",".join(map(str, t.stride()))
    if t.storage_offset():
        o += f"+{t.storage_offset()}"
    if t.requires_grad:
        o += "g"
    try:
        p = t.untyped_storage().data_ptr()
    except Exception:
        p = 0
    return o + ("@" + f"{p & 0xffffffffff:x}" if t.is_cuda else "@h" + f"{p:x}")
