# sys.exit in a thread ends the thread alone
# status: 0
# says: FITS h200
from training import *

thread = threading.Thread(target=lambda: sys.exit(3))
thread.start()
thread.join()
step()
