# sys.exit(-1) is 255
# status: 255
# says: FITS h200
from training import *

step()
sys.exit(-1)
