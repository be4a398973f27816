# a child that uses the device
# status: 0
# says: Ranks
from training import *

import subprocess
subprocess.run([sys.executable, '-c', 'import torch; torch.zeros(9, device="cuda"); print("child")'], check=True); step()
