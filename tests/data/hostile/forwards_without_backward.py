# forwards in training mode, without a backward: what autograd keeps while the result is there is "saved" and "activation"
# status: 0
# says: 0     Conv2d              448        48.0
# says: 1     BatchNorm2d          32       256.0
# says: 2     ReLU                  0       256.0
# says: activation      512.0      62.7
import torch

net = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16), torch.nn.ReLU()).cuda().train()
for _ in range(2):
    out = net(torch.rand(64, 3, 256, 256, device="cuda"))
    del out
