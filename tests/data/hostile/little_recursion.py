# hardly any recursion is allowed
# status: 0
# says: FITS h200
from training import *

step()
sys.setrecursionlimit(70)
step()
sys.setrecursionlimit(1000)
