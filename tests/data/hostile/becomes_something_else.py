# it becomes a program that is not Python when the device was used
# status: 1
# says: FITS h200
from training import *

step()
step()
os.execv("/bin/false", ["false"])
