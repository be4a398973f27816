# os.getpid is replaced
# status: 0
# says: FITS h200
from training import *

step()
os.getpid = lambda: 1
step()
