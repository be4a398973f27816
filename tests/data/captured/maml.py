import torch, torch.nn as nn, torch.nn.functional as F
from torch.func import functional_call, grad, jacrev, stack_module_state, vmap
torch.manual_seed(0)
dev = "cuda"
model = nn.Sequential(nn.Linear(1, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU(), nn.Linear(40, 1)).to(dev)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
def inner(params, x, y): return F.mse_loss(functional_call(model, params, (x,)), y)
def task(params, x1, y1, x2, y2):
    g = grad(inner)(params, x1, y1)
    new = {k: params[k] - 0.1 * g[k] for k in params}
    return inner(new, x2, y2)
for _ in range(3):
    a = [torch.randn(6, 10, 1, device=dev) for _ in range(4)]
    params = dict(model.named_parameters())
    loss = vmap(task, in_dims=(None, 0, 0, 0, 0))(params, *a).mean()
    opt.zero_grad(); loss.backward(); opt.step()
