# sys.exit(256) is 0
# status: 0
# says: FITS h200
from training import *

step()
sys.exit(256)
