import os
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

mesh = init_device_mesh("cuda", (int(os.environ["WORLD_SIZE"]),))
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


with torch.device("cuda"):
    model = torch.nn.Sequential(*[Block(2048) for _ in range(4)])
for block in model:
    parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
x = torch.randn(8, 512, 2048, device="cuda")
for step in range(3):
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
if dist.get_rank() == 0:
    print("ranks", dist.get_world_size(), "peak", torch.cuda.max_memory_allocated())
dist.destroy_process_group()
