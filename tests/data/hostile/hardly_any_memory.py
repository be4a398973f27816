# a device with hardly any memory
# options: --memory 1MiB
# status: 1
# says: out of memory
from training import *
