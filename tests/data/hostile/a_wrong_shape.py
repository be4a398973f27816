# a wrong shape
# status: 1
# says: shapes cannot be multiplied
from training import *

net(torch.zeros(4, 65, device='cuda'))
