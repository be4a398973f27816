# metaprof run --workspaces none --save checkpoints.mp -- python checkpoints.py      (torch 2.11.0+cu130)
import torch
from torch.utils.checkpoint import checkpoint
net = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU()) for _ in range(4)]).cuda()
o = torch.optim.AdamW(net.parameters())
for step in range(3):
    x = torch.zeros(64, 256, device="cuda", requires_grad=True)
    h = x
    for i, l in enumerate(net):
        h = checkpoint(l, h, use_reentrant=bool(i % 2)) if i < 3 else l(h)
    with torch.no_grad(): m = h.mean()
    v = h.view(-1); v.mul_(2); h = h.detach().clone().requires_grad_() * 1 + h
    with torch.autocast("cuda", torch.bfloat16):
        y = torch.nn.functional.linear(h, net[0][0].weight)
        y = torch.nn.functional.linear(h, net[0][0].weight) + y
    loss = (y.float() ** 2).mean() + sum(h.sum(0)[:3])
    g, = torch.autograd.grad(loss, h, retain_graph=True)
    loss.backward()
    net[0][0].weight.grad.data.clamp_(-1, 1)
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    o.step(); o.zero_grad(set_to_none=step != 1)
