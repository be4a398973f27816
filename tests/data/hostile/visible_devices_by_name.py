# CUDA_VISIBLE_DEVICES has the beginning of a device's own name
# options: --gpus 2
# status: 0
# says: count 1
# says: FITS h200
import os
import subprocess
import sys

if len(sys.argv) == 1:
    name = subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.get_device_properties(1).uuid)"], capture_output=True, text=True, check=True)
    os.environ["CUDA_VISIBLE_DEVICES"] = "GPU-" + name.stdout.strip()
    os.execv(sys.executable, [sys.executable, sys.argv[0], "again"])
from training import *

print("count", torch.cuda.device_count())
step()
