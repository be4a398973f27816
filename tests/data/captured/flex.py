import torch, torch.nn as nn, torch.nn.functional as F
from torch.nn.attention.flex_attention import flex_attention, create_block_mask
torch.manual_seed(0)
dev = "cuda"
class Attn(nn.Module):
    def __init__(self, d=64, h=4, score_mod=None, hk=None):
        super().__init__(); self.h, self.hk = h, hk or h
        self.q, self.kv, self.o = nn.Linear(d, d), nn.Linear(d, 2 * self.hk * d // h), nn.Linear(d, d)
        self.score_mod = score_mod
    def forward(self, x, mask=None, score_mod=None):
        b, s, d = x.shape; e = d // self.h
        q = self.q(x).view(b, s, self.h, e).transpose(1, 2)
        k, v = self.kv(x).view(b, s, 2, self.hk, e).permute(2, 0, 3, 1, 4)
        y = flex_attention(q, k, v, score_mod=score_mod or self.score_mod, block_mask=mask, enable_gqa=self.hk != self.h)
        return self.o(y.transpose(1, 2).reshape(b, s, d))
def train(model, loss, steps=3, opt=torch.optim.AdamW):
    opt = opt(model.parameters())
    for _ in range(steps):
        loss().backward(); opt.step(); opt.zero_grad()

m = Attn(hk=2).to(dev)
mask = create_block_mask(lambda b, h, q, k: (q >= k) & (q - k < 64), None, None, 192, 192, device=dev)
train(m, lambda: m(torch.randn(2, 192, 64, device=dev), mask, lambda s, b, h, q, k: 20 * torch.tanh(s / 20)).square().mean())
