# it trains on the host alone
# status: 2
# says: the program used no CUDA device
import torch

net = torch.nn.Linear(64, 8)
net(torch.zeros(4, 64)).sum().backward()
