# it reads what `metaprof run` was given
# stdin: seven
# status: 0
# says: it reads seven
# says: FITS h200
from training import *

print("it reads", input())
step()
