# SIGQUIT
# status: 131
# says: ended by signal 3
# says: ENDED BY
from training import *

step()
os.kill(os.getpid(), signal.SIGQUIT)
