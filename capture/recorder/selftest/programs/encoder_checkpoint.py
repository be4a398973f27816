"""A transformer encoder whose layers are recomputed in the backward (checkpointing), with Adam."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5000, 256)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.1, batch_first=True) for _ in range(4))
        self.head = nn.Linear(256, 5000)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return self.head(x)


model = Encoder().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
tokens = torch.randint(5000, (8, 128)).cuda()
for _ in range(3):
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
