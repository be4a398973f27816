# os._exit in a gradient's hook
# status: 7
# says: ENDED BY
from training import *

step()
net[0].weight.register_hook(lambda gradient: os._exit(7))
step()
