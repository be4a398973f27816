# a crash in a thread
# status: 139
# says: ended by signal 11
# says: FITS h200
from training import *

import ctypes
step()
thread = threading.Thread(target=lambda: ctypes.string_at(0))
thread.start()
thread.join()
