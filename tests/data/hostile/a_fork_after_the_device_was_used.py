# a fork after the device was used
# status: 0
# says: FITS h200
from training import *

step()
if os.fork() == 0:
    try: torch.zeros(1, device='cuda')
    except RuntimeError as error: print(error)
    os._exit(0)
os.wait(); step()
