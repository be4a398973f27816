# a pool of its own
# status: 0
# says: FITS h200
from training import *

with torch.cuda.use_mem_pool(torch.cuda.MemPool()): x = torch.zeros(1000, device="cuda")
step()
