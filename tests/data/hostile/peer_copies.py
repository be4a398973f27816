# copies between two devices, and access to each other's memory
# options: --gpus 2
# status: 0
# says: True
# says: device
from training import *

step()
print(torch.cuda.can_device_access_peer(0, 1))
x = torch.zeros(1 << 20, device="cuda:0")
y = x.to("cuda:1", non_blocking=True)
y.copy_(x)
torch.nn.parallel.replicate(net, [0, 1])
