# ended by SIGTERM
# status: 143
# says: ended by signal 15
from training import *

step(); os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)
