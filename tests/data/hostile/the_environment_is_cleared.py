# the environment is cleared
# status: 0
# says: FITS h200
from training import *

os.environ.clear(); step()
