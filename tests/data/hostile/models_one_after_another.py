# models that are let go one after the other, with their gradients and optimizers, take what the first did
# status: 0
# says: as much memory for each model
from training import *


def fold():
    torch.cuda.reset_peak_memory_stats()
    net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Linear(256, 256)).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(2):
        net(torch.zeros(4, 256, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return torch.cuda.max_memory_allocated()


step()
found = [fold() for _ in range(4)]
print("as much memory for each model" if len(set(found[1:])) == 1 else found, torch.cuda.memory_allocated())
