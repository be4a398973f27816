# abort
# status: 134
# says: ended by signal 6
from training import *

step(); os.abort()
