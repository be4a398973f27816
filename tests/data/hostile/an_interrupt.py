# an interrupt
# status: 130
# says: ended by signal 2
from training import *

step(); raise KeyboardInterrupt
