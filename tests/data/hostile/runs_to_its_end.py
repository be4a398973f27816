# runs to its end
# status: 0
# says: FITS h200
from training import *

step()
