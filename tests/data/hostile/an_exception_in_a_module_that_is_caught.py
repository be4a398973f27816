# an exception in a module that is caught
# status: 0
# says: FITS h200
from training import *

try: net(torch.zeros(4, 65, device="cuda"))
except RuntimeError: pass
step()
