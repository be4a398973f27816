# the allocator's settings are no settings
# environment: PYTORCH_ALLOC_CONF=nonsense:1 PYTORCH_CUDA_ALLOC_CONF=nonsense:1
# status: 1
# says: nonsense
from training import *

step()
