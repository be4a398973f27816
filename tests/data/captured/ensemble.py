import torch, torch.nn as nn, torch.nn.functional as F
from torch.func import functional_call, grad, jacrev, stack_module_state, vmap
torch.manual_seed(0)
dev = "cuda"
models = [nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(dev) for _ in range(5)]
params, buffers = stack_module_state(models)
params = {k: v.detach().requires_grad_() for k, v in params.items()}
opt = torch.optim.Adam(params.values(), lr=1e-3)
def f(p, b, x): return functional_call(models[0], (p, b), (x,))
for _ in range(3):
    x, y = torch.randn(32, 64, device=dev), torch.zeros(32, dtype=torch.long, device=dev)
    out = vmap(f, in_dims=(0, 0, None))(params, buffers, x)
    loss = F.cross_entropy(out.flatten(0, 1), y.repeat(5))
    loss.backward(); opt.step(); opt.zero_grad()
