# a crash
# status: 139
# says: ended by signal 11
from training import *

step(); import ctypes; ctypes.string_at(0)
