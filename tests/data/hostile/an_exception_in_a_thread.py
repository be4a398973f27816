# an exception in a thread
# status: 0
# says: ZeroDivisionError
from training import *

t = threading.Thread(target=lambda: 1 / 0); t.start(); t.join(); step()
