# an exception right after the last step
# options: --steps 1
# status: 1
# says: ValueError: mine
# says: ENDED BY
from training import *

step()
raise ValueError("mine")
