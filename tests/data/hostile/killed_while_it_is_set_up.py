# killed before any phase was over
# status: 137
# says: ended by signal 9
# says: the program ended before its first phase was over
from training import *

os.kill(os.getpid(), signal.SIGKILL)
