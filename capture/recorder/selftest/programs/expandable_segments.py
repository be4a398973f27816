"""Batches of other lengths every step, in segments that grow (expandable_segments)."""
import os

os.environ["PYTORCH_ALLOC_CONF"] = os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
import torch  # noqa: E402 - the allocator reads its settings when it is loaded
from torch import nn  # noqa: E402


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(4000, 256)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(256, 4, 512, dropout=0.0, batch_first=True) for _ in range(3))
        self.head = nn.Linear(256, 64)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


model = Tagger().cuda()
optimizer = torch.optim.Adadelta(model.parameters())
for length in (64, 192, 96):
    tokens = torch.randint(4000, (16, length)).cuda()
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten() % 64)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
