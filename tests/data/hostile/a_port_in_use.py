# the port of the ranks' store is in use
# status: 1
# says: EADDRINUSE
import os
import socket

import torch
import torch.distributed as dist

x = torch.ones(1000, device="cuda")
taken = socket.socket()
taken.bind(("127.0.0.1", 0))
taken.listen()
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(taken.getsockname()[1]), RANK="0", WORLD_SIZE="1")
dist.init_process_group("nccl")
