# CUDA_VISIBLE_DEVICES is changed when the device is in use
# options: --gpus 2
# status: 0
# says: count 2
# says: FITS h200
from training import *

step()
os.environ["CUDA_VISIBLE_DEVICES"] = ""
print("count", torch.cuda.device_count())
step()
