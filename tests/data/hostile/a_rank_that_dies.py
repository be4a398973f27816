# a rank that dies
# options: --gpus 2 --timeout 200
# status: 1
# says: Signal 9 (SIGKILL)
# leaves: torchelastic_*
from ranks import *

if rank == 1: os.kill(os.getpid(), signal.SIGKILL)
time.sleep(1000)
