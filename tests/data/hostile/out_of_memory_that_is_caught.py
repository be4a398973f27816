# out of memory that is caught
# options: --memory 1GiB --context none
# status: 0
# says: the program went on
from training import *

try: torch.zeros(2 << 30, device='cuda')
except torch.OutOfMemoryError: print('smaller')
step()
