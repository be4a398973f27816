import os
import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device)
layers = torch.nn.Sequential(*[torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True) for _ in range(4)]).to(device)
stage = PipelineStage(layers, rank, world, device)
schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=lambda output, target: (output - target).square().mean())
optimizer = torch.optim.AdamW(layers.parameters())
x = torch.randn(16, 128, 512, device=device)
for step in range(3):
    if rank == 0:
        schedule.step(x)
    elif rank == world - 1:
        schedule.step(target=x, losses=[])
    else:
        schedule.step()
    optimizer.step()
    optimizer.zero_grad()
print("rank", rank, "of", world, "peak", torch.cuda.max_memory_allocated())
dist.destroy_process_group()
