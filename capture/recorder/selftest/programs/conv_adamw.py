"""A convolutional network in channels-last layout, bf16 by autocast, with AdamW."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(),
            nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer))
        self.short = nn.Conv2d(inner, outer, 1, stride, bias=False)

    def forward(self, x):
        return torch.relu(self.main(x) + self.short(x))


model = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), nn.MaxPool2d(3, 2, 1), Block(64, 64, 1), Block(64, 128, 2), Block(128, 256, 2),
                      nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 100))
model = model.cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
images = torch.randn(32, 3, 192, 192).cuda().to(memory_format=torch.channels_last)
labels = torch.randint(100, (32,)).cuda()
for _ in range(3):
    with torch.autocast("cuda", torch.bfloat16):
        loss = nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
