# the driver's own pools in place of the caching allocator
# environment: PYTORCH_ALLOC_CONF=backend:cudaMallocAsync PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
# status: 2
# says: mine
# says: the program's allocator is cudaMallocAsync
from training import *

step()
print("mine")
