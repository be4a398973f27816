# values that torch checks are allowed
# status: 0
# says: sampled (4, 8)
from training import *

normal = torch.distributions.Normal(net(torch.zeros(4, 64, device='cuda')), torch.zeros(8, device='cuda'))
print('sampled', tuple(normal.sample().shape))
