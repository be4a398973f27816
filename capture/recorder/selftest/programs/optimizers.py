"""One model, four optimizers in turn: parameter by parameter, for several at once (foreach), in one kernel (fused), and with a closure."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh(), nn.Linear(1024, 16)).cuda()
kinds = [lambda p: torch.optim.Adam(p, foreach=False), lambda p: torch.optim.RAdam(p, foreach=True), lambda p: torch.optim.AdamW(p, fused=True, amsgrad=True),
         lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, nesterov=True)]
x, target = torch.randn(128, 512).cuda(), torch.randn(128, 16).cuda()


def loss_of_step():
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), target)
    loss.backward()
    return loss


for kind in kinds:
    optimizer = kind(model.parameters())
    for _ in range(2):
        if isinstance(optimizer, torch.optim.SGD):
            optimizer.step(loss_of_step)
        else:
            loss_of_step()
            optimizer.step()
    del optimizer
