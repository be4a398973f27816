# an exception in an optimizer
# status: 1
# says: in my step
from training import *

class Mine(torch.optim.SGD):
    def step(self, closure=None): raise RuntimeError('in my step')
optimizer = Mine(net.parameters()); step()
