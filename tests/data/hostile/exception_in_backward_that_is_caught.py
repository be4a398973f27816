# exception in backward that is caught
# status: 0
# says: FITS h200
from training import *

class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 1
    @staticmethod
    def backward(ctx, g): raise RuntimeError('in my backward')
try: Broken.apply(net(torch.zeros(4, 64, device='cuda'))).sum().backward()
except RuntimeError: pass
step()
