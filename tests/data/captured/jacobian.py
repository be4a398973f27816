import torch, torch.nn as nn, torch.nn.functional as F
from torch.func import functional_call, grad, jacrev, stack_module_state, vmap
torch.manual_seed(0)
dev = "cuda"
model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 16)).to(dev)
opt = torch.optim.AdamW(model.parameters())
for _ in range(3):
    x = torch.randn(8, 16, device=dev)
    J = vmap(jacrev(model))(x)
    loss = J.square().sum(dim=(1, 2)).mean() + model(x).square().mean()
    loss.backward(); opt.step(); opt.zero_grad()
