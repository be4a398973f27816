# torch.compile with the backend that compiles nothing
# status: 0
# says: FITS h200
from training import *

net = torch.compile(net, backend="eager")
step()
step()
