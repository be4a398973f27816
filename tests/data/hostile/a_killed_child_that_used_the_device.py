# a killed child that used the device
# status: 0
# says: child gave -9
from training import *

import subprocess
child = subprocess.Popen([sys.executable, '-c', 'import os, torch; torch.zeros(9, device="cuda"); os.kill(os.getpid(), 9)'])
print('child gave', child.wait()); step()
