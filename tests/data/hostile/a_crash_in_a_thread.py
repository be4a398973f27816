# a crash in a thread
# status: 139
# says: ended by signal 11
# says: ENDED BY
from training import *

import ctypes
step()
thread = threading.Thread(target=lambda: ctypes.string_at(0))
thread.start()
thread.join()
