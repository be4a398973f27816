# torch is taken out of sys.modules
# status: 0
# says: FITS h200
from training import *

step()
sys.modules["torch"] = None
step()
