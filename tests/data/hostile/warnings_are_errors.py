# warnings are errors while it trains
# status: 0
# says: FITS h200
from training import *

import warnings
step()
warnings.simplefilter("error")
step()
