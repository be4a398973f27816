"""Memory outside the allocator of one program: mode, then a line of JSON."""

import json, os, sys, torch, ctypes

mode = sys.argv[1]
nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlInit_v2()
dev = ctypes.c_void_p()
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(dev))


class Proc(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint)]


def used():
    n = ctypes.c_uint(64)
    arr = (Proc * 64)()
    nvml.nvmlDeviceGetComputeRunningProcesses_v3(dev, ctypes.byref(n), arr)
    return {arr[i].pid: arr[i].used for i in range(n.value)}


import torch.nn as nn

if mode == "mlp":
    m, x = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)), torch.randn(32, 256)
elif mode == "conv":
    m, x = nn.Sequential(
        nn.Conv2d(3, 64, 7, 2),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    ), torch.randn(8, 3, 128, 128)
elif mode == "lstm":
    m, x = nn.LSTM(128, 128), torch.randn(16, 8, 128)
elif mode == "resnet50":
    import torchvision

    m, x = torchvision.models.resnet50(), torch.randn(16, 3, 224, 224)
elif mode.startswith("gpt2"):
    from transformers import GPT2Config, GPT2LMHeadModel

    m, x = GPT2LMHeadModel(GPT2Config(n_layer=4)), torch.randint(50257, (4, 256))
m, x = m.cuda(), x.cuda()
o = torch.optim.AdamW(m.parameters())
rows = []
for i in range(3):
    with torch.autocast("cuda", torch.bfloat16, enabled=mode == "gpt2_amp"):
        y = m(x)
        y = y[0] if isinstance(y, tuple) else y.logits if hasattr(y, "logits") else y
    y.float().square().mean().backward()
    o.step()
    o.zero_grad()
    torch.cuda.synchronize()
    rows.append(
        (
            used().get(os.getpid(), max(used().values(), default=0)),
            torch.cuda.memory_reserved(),
            torch.cuda.mem_get_info(),
        )
    )
print(
    json.dumps({"mode": mode, "rows": rows, "all": used(), "outside_mib": [(a - b) / 2**20 for a, b, _ in rows]})
)
