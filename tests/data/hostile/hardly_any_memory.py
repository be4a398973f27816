# a device with hardly any memory
# options: --memory 1MiB --context none
# status: 1
# says: out of memory
from training import *
