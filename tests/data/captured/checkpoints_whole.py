# metaprof run --workspaces none --save checkpoints_whole.mp -- python checkpoints_whole.py      (torch 2.11.0+cu130)
import torch
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

net = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)) for _ in range(4)]).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for step in range(3):
    h = torch.zeros(64, 256, device="cuda")
    for number, block in enumerate(net):
        with set_checkpoint_early_stop(number % 2 == 0):
            h = h + checkpoint(block, h, use_reentrant=False)
    h.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
