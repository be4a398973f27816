# SIGFPE
# status: 136
# says: ended by signal 8
# says: ENDED BY
from training import *

step()
os.kill(os.getpid(), signal.SIGFPE)
