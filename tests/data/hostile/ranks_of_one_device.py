# both ranks use the same device
# options: --gpus 2 --timeout 300
# status: 0
# leaves: torchelastic_*
# says: FITS h200
from ranks import *

torch.cuda.set_device(0)
y = torch.ones(1000, device="cuda:0")
torch.cuda.synchronize()
dist.destroy_process_group()
