# killed by itself
# status: 137
# says: ended by signal 9
from training import *

step(); os.kill(os.getpid(), signal.SIGKILL)
