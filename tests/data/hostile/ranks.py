"""Two ranks of NCCL: the program that imports this is started again by torchrun, and goes on in each rank."""
import os
import signal
import sys
import time

if "RANK" not in os.environ:
    os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", os.path.abspath(sys.argv[0])])

import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
x = torch.ones(1000, device="cuda")
