# sizes that follow from data
# status: 0
# says: found 10
from training import *

x = torch.ones(10, device='cuda'); print('found', len(x.nonzero())); step()
