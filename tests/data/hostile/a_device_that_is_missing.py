# two devices are named, one is there
# options: --gpus 1
# status: 1
# says: Invalid device id
# says: ENDED BY
from training import *

step()
torch.nn.DataParallel(net, device_ids=[0, 1])(torch.zeros(4, 64, device="cuda"))
