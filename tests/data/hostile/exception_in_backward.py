# exception in backward
# status: 1
# says: in my backward
from training import *

class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 1
    @staticmethod
    def backward(ctx, g): raise RuntimeError('in my backward')
Broken.apply(net(torch.zeros(4, 64, device='cuda'))).sum().backward()
