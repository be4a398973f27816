# nothing more can be written: every file is as long as it may be
# status: 0
# says: the program went on
# says: FITS h200
from training import *

import resource
step()
step()
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
step()
step()
sys.stderr.write("")
os.write(1, b"")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print("the program went on")
