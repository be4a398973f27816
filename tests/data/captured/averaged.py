"""A copy of a model with buffers that lies on the device: copy.deepcopy makes storages by themselves, into which tensors are set."""
import copy

import torch
from torch import nn

model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.Linear(32, 4)).to("cuda")
average = copy.deepcopy(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(64, 16, device="cuda")).sum().backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(average.state_dict().values(), model.state_dict().values()):
            if old.is_floating_point():
                old.lerp_(new, 0.1)
