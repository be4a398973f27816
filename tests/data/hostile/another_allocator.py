# the driver's own pools in place of the caching allocator
# environment: PYTORCH_ALLOC_CONF=backend:cudaMallocAsync PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
# status: 0
# says: the allocator's statistics are not there
from training import *

step()
print("mine")
