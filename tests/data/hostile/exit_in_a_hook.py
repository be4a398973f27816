# sys.exit in a module's hook
# status: 9
# says: ENDED BY
from training import *

step()
net.register_forward_hook(lambda *_: sys.exit(9))
step()
