# SIGFPE
# status: 136
# says: ended by signal 8
# says: FITS h200
from training import *

step()
os.kill(os.getpid(), signal.SIGFPE)
