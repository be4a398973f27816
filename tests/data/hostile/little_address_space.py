# the shell allows it little address space (ulimit -v)
# command: sh -c "ulimit -v 30000000; exec {python} {program}"
# status: 0
# says: FITS h200
from training import *

step()
