# os.getpid and threading.get_ident are replaced
# status: 0
# says: FITS h200
from training import *

step()
os.getpid = lambda: 1
threading.get_ident = lambda: 1
step()
