import torch
from torch.autograd.graph import save_on_cpu

net = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.GELU()) for _ in range(8)]).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(512, 1024, device="cuda")
for step in range(2):
    with save_on_cpu(pin_memory=True):
        loss = net(x).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("activations on the host:", torch.cuda.max_memory_allocated())

# Layers that live on the host and come to the device for their turn.
layers = [torch.nn.Linear(1024, 1024) for _ in range(4)]
optimizer = torch.optim.AdamW([p for layer in layers for p in layer.parameters()])
for step in range(2):
    y = x
    for layer in layers:
        y = torch.nn.functional.linear(y, layer.weight.to("cuda", non_blocking=True), layer.bias.to("cuda", non_blocking=True)).relu()
    y.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("parameters on the host:", torch.cuda.max_memory_allocated())
