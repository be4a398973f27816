# one rank runs out of memory
# options: --gpus 2 --memory 1GiB --context none --timeout 300
# status: 1
# says: OutOfMemoryError
# says: out of memory
# leaves: torchelastic_*
from ranks import *

if rank == 1:
    torch.zeros(1 << 30, device="cuda")
dist.all_reduce(x)
time.sleep(1000)
