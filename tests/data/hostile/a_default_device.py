# everything is made on the device
# status: 0
# says: FITS h200
import torch

torch.set_default_device("cuda")
torch.use_deterministic_algorithms(True, warn_only=True)
net = torch.nn.Linear(64, 8)
optimizer = torch.optim.Adam(net.parameters())
net(torch.zeros(4, 64)).sum().backward()
optimizer.step()
