"""What is saved for the backward waits in memory of the host. What it holds cannot be computed, and nothing may keep the device's tensors for that."""
import gc

import torch

gc.disable()
side = torch.cuda.Stream()
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.GELU()) for _ in range(4)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)


def pack(tensor):
    if tensor.numel() < 1 << 20:
        return tensor
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        host.copy_(tensor, non_blocking=True)
        tensor.record_stream(side)
    return host


def unpack(host):
    if host.is_cuda:
        return host
    with torch.cuda.stream(side):
        tensor = host.to("cuda", non_blocking=True)
    torch.cuda.current_stream().wait_stream(side)
    tensor.record_stream(torch.cuda.current_stream())
    return tensor


for _ in range(2):
    optimizer.zero_grad()
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        loss = model(torch.zeros(2048, 1024, device="cuda")).sum()
    loss.backward()
    optimizer.step()
print("the program has ended")
