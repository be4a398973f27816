"""Values that nobody can know on an emulated device: each line reads one, and is to be said to be unknown."""
import torch

numbers = torch.arange(6.0).cuda()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    tripled = numbers * 3
numbers.fill_(2)
graph.replay()
print(tripled.sum().item())
print(torch.empty(4, device="cuda").sum().item())
partly = torch.empty(4, device="cuda")
partly[:2] = 1
print(partly.sum().item())
weight = torch.ones(2, device="cuda", requires_grad=True)
weight.grad = torch.zeros(2, device="cuda")
weight.sum().backward()
print(weight.grad.sum().item())
assert partly[:2].sum().item() == 2  # this is known
