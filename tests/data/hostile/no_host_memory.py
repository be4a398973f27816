# no host memory
# status: 1
# says: MemoryError
from training import *

step(); bytearray(1 << 60)
