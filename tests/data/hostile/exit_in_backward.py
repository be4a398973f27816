# sys.exit in a backward
# status: 6
# says: ENDED BY
from training import *


class Leaves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        sys.exit(6)


step()
Leaves.apply(net(torch.zeros(4, 64, device="cuda"))).sum().backward()
