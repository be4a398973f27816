"""Programs whose peak depends on timing: each prints what the allocator says. NAME..."""

import sys, torch
from torch import nn


def report(name):
    print(name, torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), flush=True)


def net(n=12, d=2048):
    return nn.Sequential(*[nn.Sequential(nn.Linear(d, d), nn.GELU()) for _ in range(n)]).cuda()


def offload_hooks(pinned=True):
    """saved tensors go to pinned host memory on a side stream, come back on another"""
    m, x = net(), torch.randn(16384, 2048, device="cuda")
    o = torch.optim.SGD(m.parameters(), 1e-3)
    out, back = torch.cuda.Stream(), torch.cuda.Stream()

    def pack(t):
        if not t.is_cuda or isinstance(t, nn.Parameter) or t.numel() < 1 << 16 or t._base is not None:
            return t
        out.wait_stream(torch.cuda.current_stream())
        h = torch.empty(t.size(), dtype=t.dtype, pin_memory=pinned)
        with torch.cuda.stream(out):
            h.copy_(t, non_blocking=True)
        t.record_stream(out)
        return h

    def unpack(h):
        if h.is_cuda:
            return h
        back.wait_stream(out)
        with torch.cuda.stream(back):
            d = h.to("cuda", non_blocking=True)
        torch.cuda.current_stream().wait_stream(back)
        d.record_stream(torch.cuda.current_stream())
        return d

    for _ in range(3):
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            loss = m(x).square().mean()
        loss.backward()
        o.step()
        o.zero_grad()


def save_on_cpu():
    m, x = net(), torch.randn(16384, 2048, device="cuda")
    o = torch.optim.SGD(m.parameters(), 1e-3)
    for _ in range(3):
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            loss = m(x).square().mean()
        loss.backward()
        o.step()
        o.zero_grad()


def prefetch():
    """the next batch is copied on a side stream and recorded on the current one"""
    m = net(4)
    o = torch.optim.SGD(m.parameters(), 1e-3)
    s = torch.cuda.Stream()
    host = [torch.randn(16384, 2048).pin_memory() for _ in range(3)]

    def load(i):
        with torch.cuda.stream(s):
            return host[i % 3].to("cuda", non_blocking=True)

    nxt = load(0)
    for i in range(6):
        torch.cuda.current_stream().wait_stream(s)
        x = nxt
        x.record_stream(torch.cuda.current_stream())
        nxt = load(i + 1)
        m(x).square().mean().backward()
        o.step()
        o.zero_grad()


def parameters_stream():
    """weights live on the host; each layer's come on a side stream one ahead"""
    ws = [torch.randn(4096, 4096).pin_memory() for _ in range(16)]
    s = torch.cuda.Stream()
    x = torch.randn(4096, 4096, device="cuda")

    def get(i):
        with torch.cuda.stream(s):
            return ws[i].to("cuda", non_blocking=True)

    w = get(0)
    for i in range(16):
        torch.cuda.current_stream().wait_stream(s)
        now = w
        if i + 1 < 16:
            w = get(i + 1)
        x = torch.tanh(x @ now)
        now.record_stream(torch.cuda.current_stream())
        del now


def optimizer_offload():
    """gradients to the host, updated weights back, by a side stream"""
    m, x = net(8), torch.randn(4096, 2048, device="cuda")
    s = torch.cuda.Stream()
    state = [p.detach().cpu().pin_memory() for p in m.parameters()]
    for _ in range(3):
        m(x).square().mean().backward()
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            for p, h in zip(m.parameters(), state):
                g = torch.empty_like(h, pin_memory=True)
                g.copy_(p.grad, non_blocking=True)
                p.grad.record_stream(s)
                p.grad = None
                p.data.copy_(h, non_blocking=True)
        torch.cuda.current_stream().wait_stream(s)


def two_heads():
    """two branches on two streams"""
    a, b = net(6), net(6)
    x = torch.randn(16384, 2048, device="cuda")
    s = torch.cuda.Stream()
    for _ in range(3):
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            y = b(x)
        x.record_stream(s)
        z = a(x)
        torch.cuda.current_stream().wait_stream(s)
        y.record_stream(torch.cuda.current_stream())
        (z + y).square().mean().backward()
        for p in [*a.parameters(), *b.parameters()]:
            p.grad = None


def temporaries_on_side():
    s = torch.cuda.Stream()
    x = torch.randn(8192, 8192, device="cuda")
    for _ in range(10):
        y = x * 2
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            z = y @ x
        y.record_stream(s)
        del y, z


def gather_prefetch():
    """buckets gathered one ahead on a side stream, as sharded training does, freed by record_stream"""
    shards = [torch.randn(4 << 20, device="cuda") for _ in range(12)]
    s = torch.cuda.Stream()
    x = torch.randn(2048, 2048, device="cuda")
    for _ in range(2):
        full = None
        for sh in shards:
            with torch.cuda.stream(s):
                f = sh.repeat(4)
            torch.cuda.current_stream().wait_stream(s)
            x = (x @ f.view(4, 2048, 2048)[0]).tanh()
            f.record_stream(torch.cuda.current_stream())
            del f


def pinned_reuse():
    x = torch.randn(4096, 4096, device="cuda")
    for _ in range(20):
        h = torch.empty(4096, 4096, pin_memory=True)
        h.copy_(x, non_blocking=True)
        del h
    torch.cuda.synchronize()
    print({k: v for k, v in torch.cuda.host_memory_stats().items() if "bytes" in k and v})


def event_free():
    s = torch.cuda.Stream()
    torch.cuda._sleep(100_000_000)
    t = [torch.empty(1 << 20, device="cuda") for _ in range(8)]
    for v in t:
        s.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(s):
            v.add_(1)
        v.record_stream(s)
    del t, v
    u = [torch.empty(1 << 20, device="cuda") for _ in range(8)]


for n in sys.argv[1:]:
    globals()[n]()
    report(n)
