# it becomes a program that is not Python when the device was used
# status: 1
# says: ENDED BY
from training import *

step()
step()
os.execv("/bin/false", ["false"])
