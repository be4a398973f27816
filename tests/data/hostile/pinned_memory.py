# pinned memory
# status: 0
# says: FITS h200
from training import *

x = torch.zeros(1000, pin_memory=True).cuda(non_blocking=True); step()
