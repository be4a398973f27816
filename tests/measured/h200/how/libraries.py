"""What closed libraries ask for: requests of single calls, by PyTorch's memory history.   facts3.py OUT GROUP"""

import json, sys, time, itertools, warnings, torch, torch.nn.functional as F

warnings.filterwarnings("ignore")
out, group = sys.argv[1:3]
rows = []
f = open(out, "w")
hist = lambda on: torch.cuda.memory._record_memory_history(
    enabled="all" if on else None,
    **({"context": None, "max_entries": 100000, "clear_history": True} if on else {}),
)


def sizes():
    s = torch._C._cuda_memorySnapshot(None)
    r = [
        e["size"] if e["action"] == "alloc" else -1
        for e in s["device_traces"][0]
        if e["action"] in ("alloc", "free_requested")
    ]
    hist(True)
    return r


def row(name, call):
    try:
        hist(True)
        y = call()
        torch.cuda.synchronize()
        a = sizes()
        b = None
        t = [
            v
            for v in (y if isinstance(y, (tuple, list)) else [y])
            if isinstance(v, torch.Tensor) and v.requires_grad
        ]
        if t:
            g = [torch.ones_like(v) for v in t]
            hist(True)
            torch.autograd.backward(t, g)
            torch.cuda.synchronize()
            b = sizes()
        f.write(json.dumps({"case": name, "forward": a, "backward": b}) + "\n")
    except Exception as e:
        f.write(json.dumps({"case": name, "error": repr(e)[:100]}) + "\n")
    hist(False)


R = lambda *s, d=torch.float32, g=False: torch.randn(*s, device="cuda", dtype=d).requires_grad_(g)
D = {
    "f32": torch.float32,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "f64": torch.float64,
    "c64": torch.complex64,
}
x = R(64, 64) @ R(64, 64)
x.sum()
if group == "rnn":
    for mode, dt, L, bi, T, B, H, I in itertools.product(
        ("LSTM", "GRU", "RNN"),
        ("f32", "bf16", "f16"),
        (1, 2),
        (False, True),
        (1, 8, 35, 128),
        (1, 8, 64),
        (64, 200, 512),
        (64, 512),
    ):
        if dt == "f16" and (L == 2 or bi or T == 35):
            continue
        if bi and H == 200:
            continue
        m = getattr(torch.nn, mode)(I, H, L, bidirectional=bi).to("cuda", D[dt])
        v = R(T, B, I, d=D[dt], g=True)
        row(f"{mode} {dt} layers{L} {'bi' if bi else 'uni'} T{T} B{B} H{H} I{I}", lambda: m(v)[0])
        if T == 35 and not bi:
            m.eval()
            with torch.no_grad():
                row(f"{mode} {dt} layers{L} inference T{T} B{B} H{H} I{I}", lambda: m(v)[0])
    for dt, p in itertools.product(("f32", "bf16"), (0.1, 0.5)):
        m = torch.nn.LSTM(128, 128, 3, dropout=p).to("cuda", D[dt])
        row(f"LSTM {dt} layers3 dropout{p} T35 B8 H128 I128", lambda: m(R(35, 8, 128, d=D[dt], g=True))[0])
if group == "linalg":
    L = torch.linalg

    def spd(n, d, b=()):
        a = R(*b, n, n, d=d)
        return a @ a.mH + n * torch.eye(n, device="cuda", dtype=d)

    for dt in ("f32", "f64", "c64"):
        d = D[dt]
        for n in (1, 2, 5, 8, 16, 31, 32, 33, 64, 100, 128, 200, 256, 511, 512, 513, 1000, 1024, 2048):
            a, s = R(n, n, d=d), spd(n, d)
            b = R(n, 3, d=d)
            tau = R(n, d=d)
            for nm, call in {
                "geqrf": lambda: torch.geqrf(a),
                "qr": lambda: L.qr(a),
                "qr_r": lambda: L.qr(a, mode="r"),
                "householder": lambda: L.householder_product(a, tau),
                "ormqr": lambda: torch.ormqr(a, tau, b),
                "cholesky_ex": lambda: L.cholesky_ex(s),
                "lu_factor": lambda: L.lu_factor_ex(a),
                "inv_ex": lambda: L.inv_ex(a),
                "solve_ex": lambda: L.solve_ex(a, b),
                "det": lambda: L.det(a),
                "slogdet": lambda: L.slogdet(a),
                "ldl": lambda: L.ldl_factor_ex(s),
                "cholesky_solve": lambda: torch.cholesky_solve(b, s),
                "cholesky_inverse": lambda: torch.cholesky_inverse(s),
                "triangular": lambda: L.solve_triangular(s.triu(), b, upper=True),
                "lu_solve": lambda: L.lu_solve(*L.lu_factor(a), b),
            }.items():
                row(f"{nm} {dt} n{n}", call)
            if n <= 512:
                for nm, call in {
                    "eigh": lambda: L.eigh(s),
                    "eigvalsh": lambda: L.eigvalsh(s),
                    "svd": lambda: L.svd(a),
                    "svdvals": lambda: L.svdvals(a),
                    "lstsq": lambda: L.lstsq(a, b),
                    "eig": lambda: L.eig(a),
                }.items():
                    row(f"{nm} {dt} n{n}", call)
        for bb, n in itertools.product((2, 8, 64), (5, 32, 64, 200, 513)):
            a, s = R(bb, n, n, d=d), spd(n, d, (bb,))
            b = R(bb, n, 3, d=d)
            for nm, call in {
                "geqrf": lambda: torch.geqrf(a),
                "qr": lambda: L.qr(a),
                "cholesky_ex": lambda: L.cholesky_ex(s),
                "lu_factor": lambda: L.lu_factor_ex(a),
                "inv_ex": lambda: L.inv_ex(a),
                "solve_ex": lambda: L.solve_ex(a, b),
                "eigh": lambda: L.eigh(s),
                "svd": lambda: L.svd(a) if bb < 64 or n < 100 else None,
                "ldl": lambda: L.ldl_factor_ex(s),
            }.items():
                row(f"{nm} {dt} b{bb} n{n}", call)
        for m, n in ((100, 20), (1000, 50), (20, 100), (512, 64), (4096, 32)):
            a = R(m, n, d=d)
            for nm, call in {
                "geqrf": lambda: torch.geqrf(a),
                "qr": lambda: L.qr(a),
                "svd": lambda: L.svd(a, full_matrices=False),
                "lstsq": lambda: L.lstsq(a, R(m, 3, d=d)) if m >= n else None,
            }.items():
                row(f"{nm} {dt} m{m} n{n}", call)
if group == "norm":
    for dt, (n, c, h), fmt, tr in itertools.product(
        ("f32", "bf16", "f16"),
        (
            (16, 64, 56),
            (16, 64, 28),
            (32, 256, 14),
            (8, 32, 7),
            (64, 128, 28),
            (2, 2048, 7),
            (64, 3, 224),
            (128, 512, 4),
            (32, 96, 56),
        ),
        (torch.contiguous_format, torch.channels_last),
        (True, False),
    ):
        m = torch.nn.BatchNorm2d(c).cuda().train(tr)
        v = R(n, c, h, h, d=D[dt]).to(memory_format=fmt).requires_grad_()
        row(
            f"batch_norm {dt} {n}x{c}x{h} {'cl' if fmt == torch.channels_last else 'nchw'} {'train' if tr else 'eval'}",
            lambda: m(v),
        )
    for n, c, d in ((2, 16, 16), (4, 32, 8)):
        m = torch.nn.BatchNorm3d(c).cuda()
        for fmt in (torch.contiguous_format, torch.channels_last_3d):
            v = R(n, c, d, d, d).to(memory_format=fmt).requires_grad_()
            row(f"batch_norm3d f32 {n}x{c}x{d} {fmt}", lambda: m(v))
if group == "attention":
    for dt, (b, h, hk, s, t, e), causal, p in itertools.product(
        ("bf16", "f16"),
        (
            (8, 12, 12, 1024, 1024, 64),
            (2, 32, 8, 2048, 2048, 64),
            (1, 32, 8, 4096, 4096, 128),
            (64, 12, 12, 197, 197, 64),
            (4, 8, 8, 77, 77, 64),
            (1, 8, 8, 4096, 77, 40),
            (2, 10, 10, 4096, 4096, 64),
            (4, 16, 16, 1, 512, 64),
            (3, 5, 5, 100, 100, 32),
            (2, 4, 4, 256, 256, 256),
            (2, 8, 8, 512, 512, 96),
        ),
        (True, False),
        (0.0, 0.1),
    ):
        if causal and s != t:
            continue
        q, k, v = R(b, h, s, e, d=D[dt], g=True), R(b, hk, t, e, d=D[dt], g=True), R(b, hk, t, e, d=D[dt], g=True)
        row(
            f"sdpa {dt} b{b} h{h} hk{hk} s{s} t{t} e{e} causal{int(causal)} p{p}",
            lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, dropout_p=p, enable_gqa=h != hk),
        )
if group == "fft":
    for n in (8, 100, 127, 128, 1000, 1009, 1024, 4096, 10007, 65536, 100003):
        for nm, call in {
            "fft": lambda: torch.fft.fft(R(n, d=torch.complex64)),
            "rfft": lambda: torch.fft.rfft(R(n)),
            "irfft": lambda: torch.fft.irfft(R(n // 2 + 1, d=torch.complex64)),
            "fft b16": lambda: torch.fft.fft(R(16, n, d=torch.complex64)),
            "irfft b16": lambda: torch.fft.irfft(R(16, n // 2 + 1, d=torch.complex64)),
        }.items():
            row(f"{nm} n{n}", call)
    for n in (8, 15, 16, 31, 64, 100, 128, 255, 512):
        for nm, call in {
            "fft2": lambda: torch.fft.fft2(R(n, n, d=torch.complex64)),
            "rfft2": lambda: torch.fft.rfft2(R(n, n)),
            "irfft2": lambda: torch.fft.irfft2(R(n, n // 2 + 1, d=torch.complex64)),
            "rfft2 b": lambda: torch.fft.rfft2(R(4, 3, n, n)),
            "irfft2 b": lambda: torch.fft.irfft2(R(4, 3, n, n // 2 + 1, d=torch.complex64)),
            "irfftn": lambda: torch.fft.irfftn(R(3, n, n // 2 + 1, d=torch.complex64)),
        }.items():
            row(f"{nm} n{n}", call)
    for n, nnz in ((64, 100), (1000, 5000), (4096, 100000)):
        i = torch.randint(n, (2, nnz), device="cuda")
        s = torch.sparse_coo_tensor(i, R(nnz), (n, n)).coalesce()
        c = s.to_sparse_csr()
        for k in (1, 16, 256):
            row(f"coo mm n{n} nnz{nnz} k{k}", lambda: s @ R(n, k))
            row(f"csr mm n{n} nnz{nnz} k{k}", lambda: c @ R(n, k))
        row(f"csr mv n{n} nnz{nnz}", lambda: c @ R(n))
        row(f"csr csr n{n} nnz{nnz}", lambda: c @ c)
        row(f"coo coo n{n} nnz{nnz}", lambda: torch.sparse.mm(s, s))
        row(f"to_csr n{n} nnz{nnz}", lambda: s.to_sparse_csr())
        row(f"coalesce n{n} nnz{nnz}", lambda: torch.sparse_coo_tensor(i, R(nnz), (n, n)).coalesce())
        row(f"sampled n{n} nnz{nnz}", lambda: torch.sparse.sampled_addmm(c, R(n, 16), R(16, n)))
if group == "conv":
    for dt, (n, ci, h, co, k, st, gr, nd), fmt, tf in itertools.product(
        ("f32", "bf16", "f16"),
        (
            (1, 3, 32, 8, 3, 1, 1, 2),
            (8, 64, 56, 64, 1, 1, 1, 2),
            (8, 64, 56, 64, 3, 1, 1, 2),
            (32, 3, 224, 64, 7, 2, 1, 2),
            (16, 128, 28, 128, 3, 2, 1, 2),
            (16, 256, 14, 1024, 1, 1, 1, 2),
            (32, 512, 7, 512, 3, 1, 1, 2),
            (16, 96, 56, 96, 7, 1, 96, 2),
            (16, 3, 224, 768, 16, 16, 1, 2),
            (4, 32, 64, 32, 5, 1, 1, 2),
            (16, 64, 28, 64, 3, 1, 4, 2),
            (4, 16, 100, 32, 3, 1, 1, 1),
            (8, 80, 3000, 384, 3, 2, 1, 1),
            (2, 8, 16, 16, 3, 1, 1, 3),
            (1, 1, 28, 32, 3, 1, 1, 2),
            (64, 1, 28, 20, 5, 1, 1, 2),
        ),
        ("nchw", "cl"),
        (True, False),
    ):
        if not tf and dt != "f32" or fmt == "cl" and nd != 2:
            continue
        torch.backends.cudnn.allow_tf32 = tf
        sp = (h,) * nd
        v = R(n, ci, *sp, d=D[dt])
        w = R(co, ci // gr, *(k,) * nd, d=D[dt])
        if fmt == "cl":
            v, w = v.to(memory_format=torch.channels_last), w.to(memory_format=torch.channels_last)
        v.requires_grad_()
        w.requires_grad_()
        conv = (F.conv1d, F.conv2d, F.conv3d)[nd - 1]
        row(
            f"conv{nd}d {dt} {n}x{ci}x{h} to {co} k{k} s{st} g{gr} {fmt} tf32{int(tf)}",
            lambda: conv(v, w, None, st, 0 if k == 16 else k // 2, 1, gr),
        )
f.close()
