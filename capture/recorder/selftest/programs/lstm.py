"""A language model of two LSTM layers (cuDNN's), with RMSprop."""
import torch
from torch import nn


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(2000, 256)
        self.lstm = nn.LSTM(256, 512, num_layers=2, dropout=0.1, batch_first=True)
        self.head = nn.Linear(512, 2000)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0])


model = Language().cuda()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
tokens = torch.randint(2000, (16, 64)).cuda()
for _ in range(3):
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
