# sys.excepthook raises an error itself
# status: 1
# says: Error in sys.excepthook
# says: ENDED BY
from training import *

sys.excepthook = lambda *_: 1 / 0
step()
raise ValueError("mine")
