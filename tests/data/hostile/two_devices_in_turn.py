# two devices in turn
# options: --gpus 2
# status: 0
# says: FITS h200
from training import *

step(); y = torch.zeros(1 << 20, device='cuda:1'); torch.cuda.set_device(1); torch.cuda.synchronize()
