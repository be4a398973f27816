# no device is visible
# options: --env CUDA_VISIBLE_DEVICES=
# status: 1
# says: No CUDA GPUs are available
from training import *

step()
