# files that it makes may be read by nobody
# status: 0
# says: FITS h200
from training import *

os.umask(0o777)
step()
