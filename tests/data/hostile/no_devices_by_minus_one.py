# CUDA_VISIBLE_DEVICES=-1
# environment: CUDA_VISIBLE_DEVICES=-1
# status: 1
# says: No CUDA GPUs are available
from training import *
