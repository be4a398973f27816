"""Rates of the card: median and spread of single kernels by CUDA events, inputs random."""

import json, sys, time, statistics, torch
import torch.nn.functional as F

out = {"device": torch.cuda.get_device_name(), "rows": []}
deadline = time.time() + float(sys.argv[2])


def timed(f, inner):
    f()
    f()
    torch.cuda.synchronize()
    ts = []
    for _ in range(7):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record()
        for _ in range(inner):
            f()
        b.record()
        b.synchronize()
        ts.append(a.elapsed_time(b) / inner * 1e-3)
    return sorted(ts)


def row(kind, what, f):
    if time.time() > deadline:
        return
    try:
        t = timed(f, 1)[3]
        inner = max(1, min(50, int(2e-3 / max(t, 1e-6))))
        ts = timed(f, inner)
        out["rows"].append({"kind": kind, **what, "seconds": ts[3], "low": ts[0], "high": ts[-1]})
    except Exception as e:
        out["rows"].append({"kind": kind, **what, "error": repr(e)[:120]})
        torch.cuda.empty_cache()


R = lambda *s, d=torch.float32: torch.randn(*s, device="cuda", dtype=d)
for d in (torch.bfloat16, torch.float32, "tf32", torch.float16, torch.float64):
    torch.backends.cuda.matmul.allow_tf32 = d == "tf32"
    t = torch.float32 if d == "tf32" else d
    for m, n, k in (
        (64, 64, 64),
        (256, 256, 256),
        (512, 512, 512),
        (1024, 1024, 1024),
        (2048, 2048, 2048),
        (4096, 4096, 4096),
        (8192, 8192, 8192),
        (8192, 768, 768),
        (8192, 3072, 768),
        (8192, 768, 3072),
        (4096, 4096, 128),
        (128, 4096, 4096),
        (16, 4096, 4096),
        (1, 4096, 4096),
        (8192, 50257, 768),
        (16384, 2048, 2048),
        (4096, 14336, 4096),
        (197 * 64, 768, 768),
        (1000, 1000, 1000),
        (4097, 4095, 1023),
    ):
        if m * n * k > 3e11 and t in (torch.float32, torch.float64) and d != "tf32":
            continue
        a, b = R(m, k, d=t), R(k, n, d=t)
        bt = R(n, k, d=t).t()
        row("mm", {"dtype": str(d), "m": m, "n": n, "k": k, "layout": "nn"}, lambda: a @ b)
        row("mm", {"dtype": str(d), "m": m, "n": n, "k": k, "layout": "nt"}, lambda: a @ bt)
        del a, b, bt
    for bb, m, n, k in (
        (96, 1024, 1024, 64),
        (96, 1024, 64, 1024),
        (768, 197, 197, 64),
        (768, 64, 64, 64),
        (32, 512, 512, 128),
    ):
        a, b = R(bb, m, k, d=t), R(bb, k, n, d=t)
        row("bmm", {"dtype": str(d), "b": bb, "m": m, "n": n, "k": k}, lambda: a @ b)
        del a, b
torch.backends.cuda.matmul.allow_tf32 = False
for d in (torch.float32, torch.bfloat16):
    for e in range(10, 30, 2):
        x = R(1 << e, d=d)
        y = R(1 << e, d=d)
        z = torch.empty_like(x)
        w = {"dtype": str(d), "n": 1 << e}
        row("copy_", w, lambda: z.copy_(x))
        row("add", w, lambda: torch.add(x, y, out=z))
        row("gelu", w, lambda: torch._C._nn.gelu(x, out=z))
        row("zero_", w, lambda: z.zero_())
        row("sum", w, lambda: x.sum())
        row("exp", w, lambda: torch.exp(x, out=z))
        row("mul_scalar", w, lambda: torch.mul(x, 2.0, out=z))
        row("dropout", w, lambda: torch.native_dropout(x, 0.1, True))
        if d == torch.float32:
            row("to_bf16", w, lambda: x.bfloat16())
        del x, y, z
    for r, c in ((8192, 768), (8192, 4096), (1024, 50257), (65536, 128), (12288, 197), (98304, 1024)):
        x = R(r, c, d=d).requires_grad_()
        w = torch.ones(c, device="cuda", dtype=d, requires_grad=True)
        b = torch.zeros_like(w).requires_grad_()
        q = {"dtype": str(d), "rows": r, "columns": c}
        with torch.no_grad():
            row("softmax", q, lambda: torch.softmax(x, 1))
            row("layer_norm", q, lambda: F.layer_norm(x, (c,), w, b))
            row("sum_rows", q, lambda: x.sum(0))
            row("sum_columns", q, lambda: x.sum(1))
            row("transpose", q, lambda: x.t().contiguous())
            row("log_softmax", q, lambda: torch.log_softmax(x, 1))
        y = F.layer_norm(x, (c,), w, b)
        g = torch.ones_like(y)
        row("layer_norm_backward", q, lambda: torch.autograd.grad(y, (x, w, b), g, retain_graph=True))
        del x, y, g
    for v, c, n in ((50257, 768, 8192), (128256, 2048, 8192)):
        e = R(v, c, d=d).requires_grad_()
        i = torch.randint(v, (n,), device="cuda")
        y = F.embedding(i, e)
        g = torch.ones_like(y)
        q = {"dtype": str(d), "rows": v, "columns": c, "n": n}
        with torch.no_grad():
            row("embedding", q, lambda: F.embedding(i, e))
        row("embedding_backward", q, lambda: torch.autograd.grad(y, e, g, retain_graph=True))
        del e, y, g
for d in (torch.float32, torch.bfloat16):
    for fmt in (torch.contiguous_format, torch.channels_last):
        for n, ci, h, co, k, s, gr in (
            (64, 3, 224, 64, 7, 2, 1),
            (64, 64, 56, 64, 3, 1, 1),
            (64, 64, 56, 256, 1, 1, 1),
            (64, 128, 28, 128, 3, 1, 1),
            (64, 256, 14, 256, 3, 1, 1),
            (64, 512, 7, 512, 3, 1, 1),
            (64, 256, 56, 512, 1, 2, 1),
            (64, 96, 56, 96, 7, 1, 96),
            (64, 512, 14, 512, 3, 1, 512),
            (64, 3, 224, 768, 16, 16, 1),
        ):
            x = R(n, ci, h, h, d=d).to(memory_format=fmt).requires_grad_()
            w = R(co, ci // gr, k, k, d=d).to(memory_format=fmt).requires_grad_()
            q = {
                "dtype": str(d),
                "format": str(fmt),
                "n": n,
                "ci": ci,
                "h": h,
                "co": co,
                "k": k,
                "s": s,
                "groups": gr,
            }
            p = 0 if k == 16 else k // 2
            for tf in ((True, False) if d == torch.float32 else (True,)):
                torch.backends.cudnn.allow_tf32 = tf
                q = q | {"tf32": tf}
                with torch.no_grad():
                    row("conv", q, lambda: F.conv2d(x, w, None, s, p, 1, gr))
                y = F.conv2d(x, w, None, s, p, 1, gr)
                g = torch.ones_like(y)
                row("conv_backward", q, lambda: torch.autograd.grad(y, (x, w), g, retain_graph=True))
                del y, g
            if k != 16 and gr == 1:
                with torch.no_grad():
                    pass
            del x, w
        for n, c, h in ((64, 64, 112), (64, 256, 56), (64, 512, 28), (64, 2048, 7)):
            x = R(n, c, h, h, d=d).to(memory_format=fmt).requires_grad_()
            w = torch.ones(c, device="cuda", requires_grad=True)
            b = torch.zeros(c, device="cuda", requires_grad=True)
            m = torch.zeros(c, device="cuda")
            v = torch.ones(c, device="cuda")
            q = {"dtype": str(d), "format": str(fmt), "n": n, "c": c, "h": h}
            with torch.no_grad():
                row("batch_norm", q, lambda: F.batch_norm(x, m, v, w, b, True))
                row("max_pool", q, lambda: F.max_pool2d(x, 3, 2, 1))
            y = F.batch_norm(x, m, v, w, b, True)
            g = torch.ones_like(y)
            row("batch_norm_backward", q, lambda: torch.autograd.grad(y, (x, w, b), g, retain_graph=True))
            del x, y, g
for d in (torch.bfloat16, torch.float16, torch.float32):
    for b, h, s, e, causal in (
        (8, 12, 1024, 64, True),
        (8, 12, 1024, 64, False),
        (2, 32, 2048, 64, True),
        (2, 32, 4096, 128, True),
        (64, 12, 197, 64, False),
        (32, 12, 512, 64, False),
    ):
        q = R(b, h, s, e, d=d).requires_grad_()
        f = lambda: F.scaled_dot_product_attention(q, q, q, is_causal=causal)
        w = {"dtype": str(d), "b": b, "h": h, "s": s, "e": e, "causal": causal}
        with torch.no_grad():
            row("sdpa", w, f)
        y = f()
        g = torch.ones_like(y)
        row("sdpa_backward", w, lambda: torch.autograd.grad(y, q, g, retain_graph=True))
        del q, y, g
for e in (10, 16, 20, 24, 28):
    n = 1 << e
    host = torch.empty(n, dtype=torch.uint8)
    pin = host.pin_memory()
    dv = torch.empty(n, dtype=torch.uint8, device="cuda")
    row("h2d", {"n": n, "pinned": True}, lambda: dv.copy_(pin, non_blocking=True))
    row("d2h", {"n": n, "pinned": True}, lambda: pin.copy_(dv, non_blocking=True))
    row("h2d", {"n": n, "pinned": False}, lambda: dv.copy_(host))
    row("d2h", {"n": n, "pinned": False}, lambda: host.copy_(dv))
t = time.perf_counter()
x = torch.zeros(1, device="cuda")
for _ in range(2000):
    x.add_(1)
out["host_seconds_per_call"] = (time.perf_counter() - t) / 2000
torch.cuda.synchronize()
json.dump(out, open(sys.argv[1], "w"))
print(len(out["rows"]), "rows")
