"""What the driver takes and how it rounds: contexts, libraries, cudaMalloc, VMM. One JSON line at the end."""

import ctypes, json, os, sys, time

out = {"points": [], "malloc": [], "vmm": {}}
cu = ctypes.CDLL("libcuda.so.1")
nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlInit_v2()
dev = ctypes.c_void_p()
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(dev))


class Mem(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Mem2(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    ]


class Proc(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gi", ctypes.c_uint), ("ci", ctypes.c_uint)]


def smi():
    m = Mem()
    nvml.nvmlDeviceGetMemoryInfo(dev, ctypes.byref(m))
    m2 = Mem2()
    m2.version = ctypes.sizeof(Mem2) | (2 << 24)
    nvml.nvmlDeviceGetMemoryInfo_v2(dev, ctypes.byref(m2))
    n = ctypes.c_uint(64)
    arr = (Proc * 64)()
    nvml.nvmlDeviceGetComputeRunningProcesses_v3(dev, ctypes.byref(n), arr)
    return {
        "nvml_used": m.used,
        "nvml2_used": m2.used,
        "nvml2_reserved": m2.reserved,
        "nvml_total": m.total,
        "procs": [(arr[i].pid, arr[i].used) for i in range(n.value)],
    }


have = False


def point(name):
    row = {"at": name, **smi()}
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_initialized():
        row["reserved"] = sys.modules["torch"].cuda.memory_reserved()
    if have:
        f, t = ctypes.c_size_t(), ctypes.c_size_t()
        cu.cuMemGetInfo_v2(ctypes.byref(f), ctypes.byref(t))
        row |= {"free": f.value, "total": t.value}
    out["points"].append(row)
    print(row, flush=True)


point("start")
cu.cuInit(0)
point("cuInit")
d = ctypes.c_int()
cu.cuDeviceGet(ctypes.byref(d), 0)
ctx = ctypes.c_void_p()
t0 = time.time()
cu.cuDevicePrimaryCtxRetain(ctypes.byref(ctx), d)
cu.cuCtxSetCurrent(ctx)
have = True
out["context_seconds"] = time.time() - t0
point("primary context")


def free():
    f, t = ctypes.c_size_t(), ctypes.c_size_t()
    cu.cuMemGetInfo_v2(ctypes.byref(f), ctypes.byref(t))
    return f.value


for size in (
    1,
    512,
    4096,
    65536,
    1 << 20,
    (1 << 20) + 1,
    2 << 20,
    (2 << 20) + 1,
    3 << 20,
    20 << 20,
    (20 << 20) + 512,
    33 << 20,
    1 << 30,
):
    rows = []
    ptrs = []
    for _ in range(6):
        before = free()
        p = ctypes.c_ulonglong()
        e = cu.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(size))
        rows.append((hex(p.value), before - free()))
        ptrs.append(p)
    back = []
    for p in ptrs:
        before = free()
        cu.cuMemFree_v2(p)
        back.append(free() - before)
    out["malloc"].append({"size": size, "rows": rows, "freed": back})
print(json.dumps(out["malloc"]))


class Loc(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Prop(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("handles", ctypes.c_int),
        ("loc", Loc),
        ("meta", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


pr = Prop()
pr.type = 1
pr.loc = Loc(1, 0)
for name, flag in (("minimum", 0), ("recommended", 1)):
    g = ctypes.c_size_t()
    cu.cuMemGetAllocationGranularity(ctypes.byref(g), ctypes.byref(pr), flag)
    out["vmm"][name] = g.value
import torch

out["torch"] = torch.__version__
point("import torch")
torch.cuda.init()
point("torch.cuda.init")
x = torch.empty(1, device="cuda")
point("first empty (2 MiB segment)")
x.zero_()
torch.cuda.synchronize()
point("first kernel (zero_)")
x = torch.empty(1 << 20, device="cuda")
x = x + 1
torch.cuda.synchronize()
point("add")
for k, f in {
    "exp": torch.exp,
    "sum": torch.sum,
    "sort": torch.sort,
    "softmax": lambda v: torch.softmax(v.view(1024, -1), 1),
    "cumsum": lambda v: torch.cumsum(v, 0),
}.items():
    f(x)
    torch.cuda.synchronize()
    point(k)
torch.cuda.empty_cache()
point("empty_cache")
w = torch.empty(1024, 1024, device="cuda")
point("before cublas")
torch.cuda.current_blas_handle()
point("cublas handle")
y = w @ w
torch.cuda.synchronize()
point("first sgemm")
h = w.bfloat16()
y = h @ h
torch.cuda.synchronize()
point("first bf16 gemm")
y = torch.addmm(h[0], h, h)
torch.cuda.synchronize()
point("first cublasLt")
c = torch.nn.Conv2d(64, 64, 3, padding=1).cuda()
i = torch.empty(8, 64, 56, 56, device="cuda")
point("before cudnn")
y = c(i)
torch.cuda.synchronize()
point("first cudnn conv fwd")
y.sum().backward()
torch.cuda.synchronize()
point("first cudnn conv bwd")
l = torch.nn.LSTM(64, 64).cuda()
y = l(torch.empty(8, 8, 64, device="cuda"))[0]
y.sum().backward()
torch.cuda.synchronize()
point("first cudnn lstm")
q = torch.empty(2, 8, 512, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
torch.cuda.synchronize()
point("flash attention")
z = torch.linalg.solve(w + torch.eye(1024, device="cuda"), w)
torch.cuda.synchronize()
point("cusolver")
z = torch.fft.fft(w)
torch.cuda.synchronize()
point("cufft")
z = torch.eye(64, device="cuda").to_sparse() @ torch.eye(64, device="cuda")
torch.cuda.synchronize()
point("cusparse")
for n in (1, 2, 3):
    s = torch.cuda.Stream()
    torch.cuda.synchronize()
    point(f"stream {n}")
g = torch.cuda.CUDAGraph()
a = torch.zeros(1024, device="cuda")
with torch.cuda.graph(g):
    for _ in range(2000):
        a.add_(1)
point("graph of 2000 nodes captured and instantiated")
g.replay()
torch.cuda.synchronize()
point("graph replayed")
import torch.distributed as dist

os.environ |= {
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": str(29500 + os.getpid() % 1000),
    "RANK": "0",
    "WORLD_SIZE": "1",
}
try:
    dist.init_process_group("nccl", device_id=torch.device("cuda:0"))
    point("nccl init, eager")
    dist.all_reduce(a)
    torch.cuda.synchronize()
    point("nccl all_reduce")
except Exception as e:
    print("nccl", repr(e)[:200])
out["reserved"] = torch.cuda.memory_reserved()
json.dump(out, open(sys.argv[1], "w"))
