# a process that is stopped
# options: --timeout 30
# status: 2
# says: the program was ended after 30 s
from training import *

step()
step()
os.kill(os.getpid(), signal.SIGSTOP)
