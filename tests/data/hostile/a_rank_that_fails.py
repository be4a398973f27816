# a rank that fails
# options: --gpus 2 --timeout 200
# status: 1
# says: of rank 1
# leaves: torchelastic_*
from ranks import *

if rank == 1: raise ValueError('of rank 1')
time.sleep(1000)
