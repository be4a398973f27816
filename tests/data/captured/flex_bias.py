import torch, torch.nn as nn, torch.nn.functional as F
from torch.nn.attention.flex_attention import flex_attention, create_block_mask
torch.manual_seed(0)
dev = "cuda"
class Attn(nn.Module):
    def __init__(self, d=64, h=4):
        super().__init__(); self.h = h
        self.q, self.kv, self.o = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)
        self.bias = nn.Parameter(torch.zeros(h, 512))
    def forward(self, x, mask=None):
        b, s, d = x.shape; e = d // self.h
        q = self.q(x).view(b, s, self.h, e).transpose(1, 2)
        k, v = self.kv(x).view(b, s, 2, self.h, e).permute(2, 0, 3, 1, 4)
        bias = self.bias
        y = flex_attention(q, k, v, score_mod=lambda s, b, h, q, k: s + bias[h, q - k + 256], block_mask=mask)
        return self.o(y.transpose(1, 2).reshape(b, s, d))
m = Attn().to(dev)
mask = create_block_mask(lambda b, h, q, k: (q >= k) & (q - k < 64), None, None, 192, 192, device=dev)
opt = torch.optim.AdamW(m.parameters())
for _ in range(3):
    m(torch.randn(2, 192, 64, device=dev), mask).square().mean().backward(); opt.step(); opt.zero_grad()
