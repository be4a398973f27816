# an exception in a hook of its own
# status: 1
# says: ZeroDivisionError
from training import *

net.register_forward_hook(lambda *_: 1 / 0)
step()
