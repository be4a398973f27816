"""A loss whose classes are on several ranks."""
import torch
import torch.distributed as dist
from torch.distributed.tensor.parallel import ColwiseParallel, loss_parallel, parallelize_module

torch.cuda.set_device(0)
dist.init_process_group("nccl")
mesh = dist.init_device_mesh("cuda", (dist.get_world_size(),))
head = parallelize_module(torch.nn.Linear(64, 4096, bias=False).cuda(), mesh, ColwiseParallel(use_local_output=False))
optimizer = torch.optim.SGD(head.parameters(), 0.1)
for step in range(3):
    with loss_parallel():
        target = torch.randint(4096, (2048,)).cuda()
        torch.nn.functional.cross_entropy(head(torch.randn(2048, 64, device="cuda")), target).backward()
    optimizer.step()
    optimizer.zero_grad()
