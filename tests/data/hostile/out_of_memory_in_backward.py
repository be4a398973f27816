# the device has room for the forward, and none for the backward
# options: --memory 116MiB --context none
# status: 1
# says: out of memory
# says: backward
from training import *

x = torch.zeros(8 << 20, device="cuda", requires_grad=True)
y = x
loss = (net(torch.zeros(4, 64, device="cuda")).sum() + (y * 2).sum())
loss.backward()
