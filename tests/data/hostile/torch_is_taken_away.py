# torch is taken out of sys.modules, and an operator of it imports it
# status: 1
# says: import of torch halted
# says: ENDED BY
from training import *

step()
sys.modules["torch"] = None
step()
