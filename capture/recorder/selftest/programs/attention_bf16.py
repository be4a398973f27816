"""Causal attention by scaled_dot_product_attention in bf16 weights, with NAdam."""
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).flatten(2))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(8000, 512)
        self.layers = nn.Sequential(*(Attention(512, 8) for _ in range(3)))
        self.head = nn.Linear(512, 8000)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens)))


model = Decoder().cuda().bfloat16()
optimizer = torch.optim.NAdam(model.parameters(), lr=1e-4)
tokens = torch.randint(8000, (4, 256)).cuda()
for _ in range(3):
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1).float(), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
