"""A policy that draws actions from normal distributions, whose standard deviations PyTorch checks on the device."""
import torch
from torch import nn
from torch.distributions import Normal


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 64), nn.Tanh())
        self.mean, self.value, self.log_std = nn.Linear(64, 4), nn.Linear(64, 1), nn.Parameter(torch.zeros(4))

    def forward(self, seen):
        hidden = self.body(seen)
        return Normal(self.mean(hidden), self.log_std.exp()), self.value(hidden).squeeze(-1)


policy = Policy().to("cuda")
optimizer = torch.optim.Adam(policy.parameters())
seen, gained = torch.randn(256, 16, device="cuda"), torch.randn(256, device="cuda")
with torch.no_grad():
    chosen, value = policy(seen)
    actions = chosen.sample()
    before = chosen.log_prob(actions).sum(-1)
for part in range(0, 256, 128):
    some = slice(part, part + 128)
    chosen, value = policy(seen[some])
    ratio = (chosen.log_prob(actions[some]).sum(-1) - before[some]).exp()
    loss = -(ratio.clamp(0.8, 1.2) * gained[some]).mean() + (value - gained[some]).pow(2).mean() - chosen.entropy().sum(-1).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
    optimizer.step()
