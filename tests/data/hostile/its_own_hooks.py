# its own hooks
# status: 0
# says: FITS h200
from training import *

seen = []
net.register_forward_hook(lambda *a: seen.append(1))
step(); assert seen == [1]
