# a child process turns the caching allocator off: it runs as on a device, and the report of its parent names it
# status: 0
# says: child: torch.Size([4])
# says: is not in this report: PYTORCH_NO_CUDA_MEMORY_CACHING is set
# says: FITS h200
import os
import subprocess
import sys

from training import *

step()
subprocess.run([sys.executable, "-c", "import torch; print('child:', torch.zeros(4, device='cuda').shape)"],
               env=dict(os.environ, PYTORCH_NO_CUDA_MEMORY_CACHING="1"), check=True)
