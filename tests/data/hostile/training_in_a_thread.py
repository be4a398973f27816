# training in a thread
# status: 0
# says: FITS h200
from training import *

t = threading.Thread(target=step); t.start(); t.join()
