# a child by fork that is left behind
# status: 0
# says: 1 processes that the program had left running were ended
from training import *

step()
if os.fork() == 0: time.sleep(1000)
