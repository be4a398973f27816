"""Seconds that the driver's calls take the host: memory of the device and of the host, streams, events, launches."""

import ctypes, json, statistics, sys, time

cu = ctypes.CDLL("libcuda.so.1")
cu.cuInit(0)
d = ctypes.c_int()
cu.cuDeviceGet(ctypes.byref(d), 0)
c = ctypes.c_void_p()
cu.cuDevicePrimaryCtxRetain(ctypes.byref(c), d)
cu.cuCtxSetCurrent(c)
out = {}


def timed(f, n=5):
    t = []
    for _ in range(n):
        a = time.perf_counter()
        f()
        t.append(time.perf_counter() - a)
    return {"median": statistics.median(t), "all": t}


for mib in (2, 20, 64, 256, 1024, 4096):
    p = ctypes.c_ulonglong()
    a, f = [], []
    for _ in range(6):
        t = time.perf_counter()
        cu.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(mib << 20))
        a.append(time.perf_counter() - t)
        t = time.perf_counter()
        cu.cuMemFree_v2(p)
        f.append(time.perf_counter() - t)
    out[f"cuMemAlloc {mib}"] = a
    out[f"cuMemFree {mib}"] = f
for mib in (1, 8, 32, 128, 512):
    p = ctypes.c_void_p()
    a, f = [], []
    for _ in range(5):
        t = time.perf_counter()
        cu.cuMemHostAlloc(ctypes.byref(p), ctypes.c_size_t(mib << 20), 0)
        a.append(time.perf_counter() - t)
        t = time.perf_counter()
        cu.cuMemFreeHost(p)
        f.append(time.perf_counter() - t)
    out[f"cuMemHostAlloc {mib}"] = a
    out[f"cuMemFreeHost {mib}"] = f
import torch

x = torch.zeros(1, device="cuda")
s = torch.cuda.Stream()
torch.cuda.synchronize()


def many(f, n=2000):
    torch.cuda.synchronize()
    t = time.perf_counter()
    for _ in range(n):
        f()
    r = (time.perf_counter() - t) / n
    torch.cuda.synchronize()
    return r


e = torch.cuda.Event()
out["add_"] = many(lambda: x.add_(1))
out["event_record"] = many(lambda: e.record())
out["event_query"] = many(lambda: e.query())
out["wait_stream"] = many(lambda: s.wait_stream(torch.cuda.current_stream()))
out["empty"] = many(lambda: torch.empty(100, device="cuda"))
w = torch.randn(64, 64, device="cuda", requires_grad=True)
out["linear"] = many(lambda: torch.nn.functional.linear(w, w))
h = torch.empty(1 << 20).pin_memory()
dv = torch.empty(1 << 20, device="cuda")
out["copy_pinned_async"] = many(lambda: dv.copy_(h, non_blocking=True), 200)
m = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(20)]).cuda()
o = torch.optim.SGD(m.parameters(), 1e-3)


def step():
    m(w).sum().backward()
    o.step()
    o.zero_grad()


step()
out["step_of_20_linears"] = many(step, 50)
json.dump(out, open(sys.argv[1], "w"))
print({k: (min(v) if isinstance(v, list) else v) for k, v in out.items()})
