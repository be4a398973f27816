# a backward through 50 000 nodes, and modules within 100 others
# status: 0
# says: FITS h200
from training import *

x = torch.zeros(4, device="cuda", requires_grad=True)
y = x
for _ in range(50000):
    y = y + 1
y.sum().backward()
for _ in range(100):
    net = torch.nn.Sequential(net)
net(torch.zeros(4, 64, device="cuda")).sum().backward()
