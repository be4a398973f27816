# CUDA_VISIBLE_DEVICES=1,0,9: what follows a wrong number is not there
# environment: CUDA_VISIBLE_DEVICES=1,0,9
# options: --gpus 3
# status: 0
# says: count 2
# says: FITS h200
from training import *

print("count", torch.cuda.device_count())
step()
