# the allocator is to be changed when it was used
# status: 1
# says: Can't swap an already initialized allocator
# says: ENDED BY
from training import *

step()
torch.cuda.memory.change_current_allocator(torch.cuda.memory.CUDAPluggableAllocator("libc.so.6", "malloc", "free"))
