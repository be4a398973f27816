# the garbage collector calls a function that raises errors
# status: 0
# says: FITS h200
from training import *

import gc
gc.callbacks.append(lambda *_: 1 / 0)
gc.set_threshold(1)
step()
gc.callbacks.clear()
