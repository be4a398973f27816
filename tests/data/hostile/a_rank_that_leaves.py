# a rank ends by itself, the other waits for it
# options: --gpus 2 --timeout 300
# status: 0
# leaves: torchelastic_*
# says: FITS h200
from ranks import *

if rank == 1:
    sys.stdout.flush()
    os._exit(0)
dist.all_reduce(x)
torch.cuda.synchronize()
dist.destroy_process_group()
