"""A pipeline of as many stages as there are ranks, of other sizes each. A stage learns from the one before it what it will be given."""
import os

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
rank, size = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", torch.cuda.current_device())
widths = [256 * (1 + n) for n in range(size + 1)]
model = torch.nn.Sequential(torch.nn.Linear(widths[rank], widths[rank + 1]), torch.nn.ReLU()).to(device)
stage = PipelineStage(model, rank, size, device)
schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=lambda output, target: (output - target).pow(2).mean())
optimizer = torch.optim.SGD(model.parameters(), 0.1)
if os.environ.get("FAILS") == str(rank):
    raise SystemExit("this rank fails")
for _ in range(2):
    given = [torch.randn(64, widths[0], device=device)] if rank == 0 else []
    target = {"target": torch.randn(64, widths[-1], device=device)} if rank == size - 1 else {}
    schedule.step(*given, **target)
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
