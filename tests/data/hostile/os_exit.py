# os._exit
# status: 3
# says: ENDED BY
from training import *

step(); os._exit(3)
