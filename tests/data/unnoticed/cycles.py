import gc

import torch


class Node:
    def __init__(self):
        self.own, self.data = self, torch.zeros(1000, device="cuda")


gc.disable()
net = torch.nn.Linear(16, 16).cuda()
for i in range(3):
    node = Node()
    net(torch.zeros(2, 16, device="cuda")).sum().backward()
    del node
    print(i, torch.cuda.memory_allocated())
gc.collect()
print(torch.cuda.memory_allocated())
net.own = net
del net
print(torch.cuda.memory_allocated())
gc.collect()
print(torch.cuda.memory_allocated())
print("the program has ended")
