# output is closed
# status: 0
# says: FITS h200
from training import *

step(); sys.stdout.close(); os.close(2)
