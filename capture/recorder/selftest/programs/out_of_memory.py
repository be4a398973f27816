"""A batch that does not fit: the program catches the error, gives its cached memory back, and goes on with a smaller batch."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
# A limit of its own, so that it does not matter what else is on the device.
torch.cuda.set_per_process_memory_fraction(2**30 / torch.cuda.get_device_properties(0).total_memory)
for rows in (1024, 1_000_000, 512):
    try:
        loss = model(torch.randn(rows, 1024, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    except torch.OutOfMemoryError:
        optimizer.zero_grad()
        torch.cuda.empty_cache()
    loss = None
