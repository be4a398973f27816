# an exit handler that uses the device
# status: 0
# says: FITS h200
from training import *

import atexit; atexit.register(step); step()
