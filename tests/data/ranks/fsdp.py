"""Gradients that are DTensors are clipped by their norm, which the ranks must first add up."""
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

torch.cuda.set_device(0)
dist.init_process_group("nccl")
net = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(8)]).cuda()
for layer in net:
    fully_shard(layer)
fully_shard(net)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(2):
    net(torch.zeros(64, 256, device="cuda")).square().mean().backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
