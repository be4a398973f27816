# a rank fails at first, and torchrun starts all ranks again
# options: --gpus 2 --timeout 400
# command: {python} -m torch.distributed.run --nproc-per-node 2 --max-restarts 1 {program}
# status: 0
# says: of the first try
# says: FITS h200
# leaves: torchelastic_*
from ranks import *

if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" and rank == 1:
    raise ValueError("of the first try")
dist.all_reduce(x)
torch.cuda.synchronize()
