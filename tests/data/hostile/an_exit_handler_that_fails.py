# an exit handler that fails
# status: 0
# says: ZeroDivisionError
from training import *

import atexit; atexit.register(lambda: 1 / 0); step()
