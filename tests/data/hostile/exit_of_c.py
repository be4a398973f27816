# the C library's exit and _exit: no handler of Python's runs, what was recorded until then is reported
# status: 4
# says: ENDED BY
from training import *

import ctypes
step()
step()
ctypes.CDLL(None)._exit(4)
