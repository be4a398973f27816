# a daemon thread that never ends
# status: 0
# says: FITS h200
from training import *

threading.Thread(target=lambda: time.sleep(1000), daemon=True).start(); step()
