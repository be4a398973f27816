# functions of the C library in place of the caching allocator
# status: 0
# says: the allocator's statistics are not there
import torch

torch.cuda.memory.change_current_allocator(torch.cuda.memory.CUDAPluggableAllocator("libc.so.6", "malloc", "free"))
from training import *

step()
print("mine")
