"""The next batch is copied by a second stream while the model computes, and its memory is told of both streams (record_stream)."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 8)).cuda()
optimizer = torch.optim.Adamax(model.parameters())
copies = torch.cuda.Stream()
batches = [torch.randn(512, 2048).pin_memory() for _ in range(4)]


def prefetched(batch):
    with torch.cuda.stream(copies):
        return batch.cuda(non_blocking=True)


ahead = prefetched(batches[0])
for number in range(3):
    torch.cuda.current_stream().wait_stream(copies)
    batch = ahead
    batch.record_stream(torch.cuda.current_stream())
    ahead = prefetched(batches[number + 1])
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    # When memory of two streams comes back depends on time, unless nothing is left to be waited for.
    torch.cuda.synchronize()
    del batch
    torch.cuda.synchronize()
