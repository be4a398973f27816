# out of memory
# options: --memory 1GiB --context none
# status: 1
# says: it asks for 8.0 GiB while
from training import *

x = torch.zeros(2 << 30, device='cuda')
