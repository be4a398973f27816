# a share of the device
# status: 1
# says: it asks for 4.0 GiB while
from training import *

torch.cuda.set_per_process_memory_fraction(0.001); torch.zeros(1 << 30, device='cuda')
