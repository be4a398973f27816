# a daemon by two forks
# status: 0
# says: 1 processes that the program had left running were ended
from training import *

step()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: time.sleep(1000)
    os._exit(0)
