# a child by fork, after the device was used, that only uses the host, and ends by sys.exit
# status: 0
# says: the child gave 5
# says: FITS h200
from training import *

step()
child = os.fork()
if child == 0:
    torch.zeros(9).sum()
    sys.exit(5)
print("the child gave", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
step()
