# a crash whose lines Python says
# status: 139
# says: Fatal Python error: Segmentation fault
# says: ended by signal 11
# says: ENDED BY
from training import *

import ctypes
import faulthandler
faulthandler.enable()
step()
ctypes.string_at(0)
