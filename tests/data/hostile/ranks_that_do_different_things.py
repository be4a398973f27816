# ranks that do different things
# options: --gpus 2 --timeout 200
# status: 0
# says: FITS h200
# leaves: torchelastic_*
from ranks import *

if rank == 0: dist.all_reduce(x)
else: dist.broadcast(x[:10], src=0)
torch.cuda.synchronize()
