import torch, torch.nn as nn, torch.nn.functional as F
from torch.func import functional_call, grad, jacrev, stack_module_state, vmap
torch.manual_seed(0)
dev = "cuda"
class Cube(torch.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(x): return x ** 3, 3 * x ** 2
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output[1]); ctx.mark_non_differentiable(output[1])
    @staticmethod
    def backward(ctx, g, _): (d,) = ctx.saved_tensors; return g * d
lin = nn.Linear(16, 16).to(dev)
opt = torch.optim.SGD(lin.parameters(), lr=.1)
for _ in range(3):
    x = torch.randn(8, 16, device=dev)
    y = vmap(lambda z: Cube.apply(lin(z))[0].sum())(x)
    g = vmap(grad(lambda z: Cube.apply(z)[0].sum()))(x)
    (y.sum() + g.sum()).backward(); opt.step(); opt.zero_grad()
