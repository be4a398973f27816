# Convolutions of bf16 on a card that has none: PyTorch computes them by columns. slow_convolutions.mp is what
# `metaprof run --device t4 --workspaces none --save FILE.mp -- python slow_convolutions.py` captured with PyTorch 2.11.
import torch
from torch import nn

PAIRS = [
    ((4, 8, 96, 96), nn.Conv2d(8, 16, 3, padding=1), nn.Conv2d(16, 16, 1, bias=False)),
    ((4, 8, 96, 96), nn.Conv2d(8, 16, 3, padding=1, groups=4), nn.Conv2d(16, 32, 1, groups=2, bias=False)),
    ((4, 8, 96, 96), nn.Conv2d(8, 16, 3, padding=2, dilation=2), nn.Conv2d(16, 16, 3, padding=3, dilation=3, groups=2, bias=False)),
    ((4, 8, 48, 48), nn.ConvTranspose2d(8, 16, 4, stride=2, padding=1), nn.ConvTranspose2d(16, 8, 2, stride=2, groups=2, bias=False)),
    ((4, 8, 4096), nn.Conv1d(8, 16, 5, padding=2), nn.Conv1d(16, 32, 3, stride=2)),
    ((2, 8, 16, 32, 32), nn.Conv3d(8, 16, 3, padding=1), nn.Conv3d(16, 8, 1, bias=False)),
    ((4, 32, 96, 96), nn.Conv2d(32, 32, 3, padding=1, groups=32), nn.Conv2d(32, 64, 1)),
]

models = [nn.Sequential(first, nn.ReLU(), second).cuda().bfloat16() for _, first, second in PAIRS]
optimizer = torch.optim.SGD([parameter for model in models for parameter in model.parameters()], lr=0.1)
inputs = [torch.zeros(sizes, device="cuda", dtype=torch.bfloat16) for sizes, *_ in PAIRS]
for _ in range(2):
    loss = sum(model(x).float().pow(2).mean() for model, x in zip(models, inputs))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
