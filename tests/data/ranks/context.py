"""Attention to tokens that are on several ranks, which send each other theirs; the second layer is recomputed in backward."""
import torch
import torch.distributed as dist
from torch.distributed.tensor.experimental import context_parallel
from torch.utils.checkpoint import checkpoint


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.heads, self.out = torch.nn.Linear(256, 768, bias=False), torch.nn.Linear(256, 256, bias=False)

    def forward(self, x):
        query, key, value = (part.unflatten(-1, (4, 64)).transpose(1, 2) for part in self.heads(x).chunk(3, -1))
        y = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return x + self.out(y.transpose(1, 2).flatten(2))


torch.cuda.set_device(0)
dist.init_process_group("nccl")
mesh = dist.init_device_mesh("cuda", (dist.get_world_size(),))
first, second = Layer().cuda().bfloat16(), Layer().cuda().bfloat16()
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], 0.1)
for step in range(2):
    tokens = torch.randn(2, 2048, 256, device="cuda", dtype=torch.bfloat16)
    with context_parallel(mesh, buffers=[tokens], buffer_seq_dims=[1], no_restore_buffers={tokens}):
        checkpoint(second, first(tokens), use_reentrant=False).float().square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
