# a job of three ranks of which two come
# options: --gpus 2 --timeout 300
# status: 1
# says: imed out
# leaves: torchelastic_*
import datetime
import os
import sys

if "RANK" not in os.environ:
    os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", os.path.abspath(sys.argv[0])])
import torch
import torch.distributed as dist

torch.cuda.set_device(int(os.environ["RANK"]))
x = torch.ones(1000, device="cuda")
os.environ["WORLD_SIZE"] = "3"
os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)
os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", None)
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=10))
