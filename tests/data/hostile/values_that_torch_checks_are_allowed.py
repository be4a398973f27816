# values that torch checks are allowed
# status: 0
# says: sampled (4, 8)
from training import *

scale = torch.nn.functional.softplus(net(torch.zeros(4, 64, device='cuda')))
normal = torch.distributions.Normal(net(torch.zeros(4, 64, device='cuda')), scale)
print('sampled', tuple(normal.sample().shape))
