"""Tables of embeddings with sparse gradients: SGD for them, Adagrad for the rest."""
import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(100_000, 64, sparse=True)
        self.items = nn.EmbeddingBag(50_000, 64, sparse=True, mode="sum")
        self.head = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, user, items):
        return self.head(torch.cat([self.users(user), self.items(items)], 1)).squeeze(1)


model = Recommender().cuda()
tables = [*model.users.parameters(), *model.items.parameters()]
optimizers = [torch.optim.SGD(tables, lr=0.1), torch.optim.Adagrad(model.head.parameters())]
user, items = (torch.arange(512) * 97 % 100_000).cuda(), (torch.arange(512 * 10) * 31 % 50_000).view(512, 10).cuda()
clicked = (torch.arange(512) % 2).float().cuda()
for _ in range(3):
    loss = nn.functional.binary_cross_entropy_with_logits(model(user, items), clicked)
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    for optimizer in optimizers:
        optimizer.zero_grad()
