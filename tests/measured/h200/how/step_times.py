"""Time of training steps: phases by CUDA events (median of 5 after 3 warm-ups) and every kernel of one step with its operator."""

import gzip, json, os, statistics, sys, time, torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tools"))
import real_build


def run(c, out):
    import record_model as R

    c = R.DEFAULTS | c
    t0 = time.time()
    module, args = real_build.build(c, torch)
    module.cuda()
    args = tuple(a.cuda() for a in args)
    opt = R.make_optimizer(c, torch, [p for p in module.parameters() if p.requires_grad])
    amp = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}.get(c["precision"])
    scaler = torch.amp.GradScaler("cuda") if c["precision"] == "amp-fp16" else None
    E = lambda: torch.cuda.Event(enable_timing=True)

    def step(rec=lambda: None):
        rec()
        with torch.autocast("cuda", amp or torch.float32, enabled=amp is not None):
            loss = module(*args)
        rec()
        (scaler.scale(loss) if scaler else loss).backward()
        rec()
        if scaler:
            scaler.step(opt)
            scaler.update()
        else:
            opt.step()
        rec()
        opt.zero_grad()

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    rows = []
    wall = []
    for _ in range(6):
        ev = []

        def rec():
            e = E()
            e.record()
            ev.append(e)

        t = time.perf_counter()
        step(rec)
        torch.cuda.synchronize()
        wall.append(time.perf_counter() - t)
        rows.append([ev[i].elapsed_time(ev[i + 1]) * 1e-3 for i in range(3)])
    med = [statistics.median(r[i] for r in rows) for i in range(3)]
    from torch.profiler import profile, ProfilerActivity

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as p:
        step()
        torch.cuda.synchronize()
    ks = []
    ops = {}
    evs = p.profiler.kineto_results.events()
    for e in evs:
        if str(e.device_type()).endswith("CPU"):
            if e.correlation_id():
                ops[e.correlation_id()] = e
    for e in evs:
        if str(e.device_type()).endswith("CUDA"):
            o = ops.get(e.linked_correlation_id())
            ks.append(
                [
                    e.name(),
                    e.start_ns(),
                    e.duration_ns(),
                    o.name() if o else None,
                    o.shapes() if o else None,
                    o.dtypes() if o else None,
                    o.fwd_thread_id() if o else None,
                ]
            )
    ks.sort(key=lambda k: k[1])
    t0k = ks[0][1] if ks else 0
    for k in ks:
        k[1] -= t0k
    with gzip.open(out, "wt") as f:
        json.dump(
            {
                "config": c,
                "device": torch.cuda.get_device_name(),
                "torch": torch.__version__,
                "seconds": dict(zip(("forward", "backward", "optimizer"), med)),
                "all": rows,
                "wall": wall,
                "peak": torch.cuda.max_memory_allocated(),
                "kernels": ks,
            },
            f,
        )
    print(
        c["model"],
        c["precision"],
        [round(1e3 * m, 3) for m in med],
        len(ks),
        "kernels",
        round(time.time() - t0, 1),
        "s",
        flush=True,
    )
