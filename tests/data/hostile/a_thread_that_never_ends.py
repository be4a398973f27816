# a thread that never ends
# options: --timeout 40
# status: 2
# says: was ended after 40 s
from training import *

threading.Thread(target=lambda: time.sleep(1000)).start(); step()
