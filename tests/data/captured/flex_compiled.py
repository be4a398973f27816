# Flex attention that is compiled, in bf16, with grouped heads, a mask of blocks and a learned bias. Exported, it is flex_compiled.pt2:
#     model, x = build("cpu"); metaprof.export(model, (x,), "flex_compiled.pt2")
# where flex_attention itself stands in place of the compiled one, as an export does not tell them apart.
import torch, torch.nn as nn
from torch.nn.attention.flex_attention import flex_attention, create_block_mask
attention = torch.compile(flex_attention) if __name__ == "__main__" else flex_attention

class Attention(nn.Module):
    def __init__(self, device, d=128, h=4, hk=2, s=256):
        super().__init__()
        self.h, self.hk = h, hk
        self.q, self.kv, self.o = nn.Linear(d, d), nn.Linear(d, 2 * hk * d // h), nn.Linear(d, d)
        self.bias = nn.Parameter(torch.zeros(h, 2 * s))
        self.mask = create_block_mask(lambda b, h, q, k: (q >= k) & (q - k < 64), None, None, s, s, device=device)

    def forward(self, x):
        b, s, d = x.shape
        q = self.q(x).view(b, s, self.h, -1).transpose(1, 2)
        k, v = self.kv(x).view(b, s, 2, self.hk, -1).permute(2, 0, 3, 1, 4)
        bias = self.bias
        y = attention(q, k, v, score_mod=lambda score, b, h, q, k: score + bias[h, q - k + s], block_mask=self.mask, enable_gqa=True)
        return self.o(y.transpose(1, 2).reshape(b, s, d)).sum()

def build(device):
    return Attention(device).to(device, torch.bfloat16), torch.zeros(2, 256, 128, device=device, dtype=torch.bfloat16)

if __name__ == "__main__":
    torch.manual_seed(0)
    model, x = build("cuda")
    opt = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        loss = model(x)
        loss.backward(); opt.step(); opt.zero_grad()
