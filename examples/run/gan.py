import torch
from torch import nn

generator = nn.Sequential(nn.ConvTranspose2d(64, 128, 4), nn.BatchNorm2d(128), nn.ReLU(), nn.ConvTranspose2d(128, 3, 4, 4)).cuda()
critic = nn.Sequential(nn.Conv2d(3, 64, 4, 2), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(64 * 7 * 7, 1)).cuda()
optimizer_g, optimizer_c = torch.optim.Adam(generator.parameters()), torch.optim.Adam(critic.parameters())
loss = nn.BCEWithLogitsLoss()
real = torch.randn(64, 3, 16, 16, device="cuda")
one, zero = torch.ones(64, 1, device="cuda"), torch.zeros(64, 1, device="cuda")
for step in range(3):
    fake = generator(torch.randn(64, 64, 1, 1, device="cuda"))
    optimizer_c.zero_grad()
    (loss(critic(real), one) + loss(critic(fake.detach()), zero)).backward()
    optimizer_c.step()
    optimizer_g.zero_grad()
    loss(critic(fake), one).backward()
    optimizer_g.step()
print("peak", torch.cuda.max_memory_allocated())
