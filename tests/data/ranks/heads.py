"""Heads that are on several ranks: the program says how many there are, and a rank's own part has fewer."""
import torch
import torch.distributed as dist
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class Heads(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.out = torch.nn.Linear(256, 512, bias=False), torch.nn.Linear(512, 256, bias=False)

    def forward(self, x):
        query = self.query(x).view(*x.shape[:-1], 8, 64).transpose(1, 2)
        pairs = query.unflatten(-1, (-1, 2)).sin().reshape(x.shape[0], 8, x.shape[1], 64)
        return self.out((query * pairs).transpose(1, 2).flatten(2))


torch.cuda.set_device(0)
dist.init_process_group("nccl")
mesh = dist.init_device_mesh("cuda", (dist.get_world_size(),))
model = parallelize_module(Heads().cuda(), mesh, {"query": ColwiseParallel(use_local_output=False), "out": RowwiseParallel()})
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(2):
    model(torch.randn(16, 128, 256, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
