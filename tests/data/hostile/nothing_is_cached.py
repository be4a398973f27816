# the caching allocator caches nothing
# environment: PYTORCH_NO_CUDA_MEMORY_CACHING=1
# status: 2
# says: mine
# says: PYTORCH_NO_CUDA_MEMORY_CACHING is set
from training import *

step()
print("mine")
