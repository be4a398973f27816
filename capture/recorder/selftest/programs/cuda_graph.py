"""A whole step is captured as a CUDA graph after three steps of warming up, and replayed; then the forward alone, in the same pool."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True)
x, labels = torch.randn(128, 1024).cuda(), torch.randint(10, (128,)).cuda()


def step():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), labels)
    loss.backward()
    optimizer.step()
    return loss


warm = torch.cuda.Stream()
warm.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(warm):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(warm)
torch.cuda.synchronize()

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step()
for _ in range(2):
    graph.replay()
torch.cuda.synchronize()

inference = torch.cuda.CUDAGraph()
with torch.no_grad(), torch.cuda.graph(inference, pool=graph.pool()):
    scores = model(x)
inference.replay()
torch.cuda.synchronize()
