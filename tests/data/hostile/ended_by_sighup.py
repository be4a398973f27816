# SIGHUP
# status: 129
# says: ended by signal 1 
# says: ENDED BY
from training import *

step()
os.kill(os.getpid(), signal.SIGHUP)
