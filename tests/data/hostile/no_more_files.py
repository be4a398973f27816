# no file can be opened any more
# status: 0
# says: none left
# says: FITS h200
from training import *

import resource
step()
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
kept = []
try:
    while True:
        kept.append(open(os.devnull))
except OSError:
    print("none left")
step()
