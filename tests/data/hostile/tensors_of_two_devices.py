# tensors of two devices
# status: 1
# says: same device
from training import *

net(torch.zeros(4, 64))
