# CUDA_VISIBLE_DEVICES is no list of numbers
# environment: CUDA_VISIBLE_DEVICES=first
# status: 1
# says: No CUDA GPUs are available
from training import *
