# a wrong device
# status: 1
# says: invalid device ordinal
from training import *

torch.zeros(1, device='cuda:7')
