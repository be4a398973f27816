# the allocator's settings are made by a function, before the device is used: 84 MiB are rounded up to 96, in the report, too
# status: 0
# says: FITS h200
# says: 100 696 064 B
# never: the allocator's model differs
import torch

torch.cuda.memory._set_allocator_settings("roundup_power2_divisions:4")
net = torch.nn.Linear(64, 64, bias=False, device="cuda")
for _ in range(2):
    net.weight.sum().backward()
    large = torch.zeros(21 << 20, device="cuda")
    del large
