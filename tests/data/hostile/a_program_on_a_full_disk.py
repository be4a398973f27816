# the program cannot be saved: the text is there
# command: sh -c "exec {python} {program}"
# options: --save full.mp
# status: 2
# says: full.mp: cannot be written
# says: FITS h200
from training import *

os.symlink("/dev/full", "full.mp")
step()
