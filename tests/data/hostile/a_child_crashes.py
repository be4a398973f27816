# a child by fork crashes, the program goes on
# status: 0
# says: the child gave 11
# says: FITS h200
from training import *

import ctypes
step()
child = os.fork()
if child == 0:
    ctypes.string_at(0)
print("the child gave", os.waitpid(child, 0)[1] & 127)
step()
