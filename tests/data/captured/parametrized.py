"""Weights that are computed when they are read: parametrizations call modules when they are made, before anything is on a device."""
import torch
from torch import nn
from torch.nn.utils import parametrizations as parametrized

model = nn.Sequential(
    parametrized.spectral_norm(nn.Linear(64, 128)), nn.SiLU(),
    parametrized.weight_norm(nn.Linear(128, 128)), nn.Mish(),
    parametrized.orthogonal(nn.Linear(128, 128), orthogonal_map="householder"), nn.Linear(128, 10)).to("cuda")
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9, centered=True)
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(32, 64, device="cuda")).pow(2).mean().backward()
    optimizer.step()
