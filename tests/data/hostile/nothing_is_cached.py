# the caching allocator caches nothing
# environment: PYTORCH_NO_CUDA_MEMORY_CACHING=1
# status: 0
# says: the allocator's statistics are not there
from training import *

step()
