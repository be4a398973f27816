# it starts itself again in the same process when the device was used
# status: 0
# says: second
# says: FITS h200
from training import *

step()
if "second" not in sys.argv:
    os.execv(sys.executable, [sys.executable, sys.argv[0], "second"])
print("second")
