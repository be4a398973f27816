# functions of the C library in place of the caching allocator
# status: 2
# says: mine
# says: only PyTorch's caching allocator can be recorded
import torch

torch.cuda.memory.change_current_allocator(torch.cuda.memory.CUDAPluggableAllocator("libc.so.6", "malloc", "free"))
from training import *

step()
print("mine")
