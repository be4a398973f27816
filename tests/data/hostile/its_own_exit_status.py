# its own exit status
# status: 5
# says: FITS h200
from training import *

step(); sys.exit(5)
