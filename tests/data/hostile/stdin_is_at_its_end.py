# stdin is at its end
# status: 1
# says: EOFError
from training import *

step(); input()
