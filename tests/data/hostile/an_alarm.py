# an alarm
# status: 142
# says: ended by signal 14
from training import *

step(); signal.alarm(1); time.sleep(60)
