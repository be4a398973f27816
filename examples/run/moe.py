import torch


class Moe(torch.nn.Module):
    """A mixture of experts that sends each expert its tokens."""

    def __init__(self, width, experts, chosen):
        super().__init__()
        self.chosen = chosen
        self.router = torch.nn.Linear(width, experts)
        self.experts = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)) for _ in range(experts))

    def forward(self, x):
        weights, indices = self.router(x).softmax(-1).topk(self.chosen)
        result = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            token, place = torch.where(indices == number)
            result.index_add_(0, token, expert(x[token]) * weights[token, place, None])
        return result


net = Moe(256, 8, 2).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for step in range(2):
    net(torch.randn(4096, 256, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("peak", torch.cuda.max_memory_allocated())
