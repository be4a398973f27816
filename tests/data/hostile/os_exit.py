# os._exit
# status: 3
# says: FITS h200
from training import *

step(); os._exit(3)
