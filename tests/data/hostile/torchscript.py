# a module as TorchScript, and one that was traced
# status: 0
# says: FITS h200
import torch
import training


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(64, 8)

    def forward(self, x):
        if x.size(0) > 2:
            x = x * 2
        return self.inner(x)


training.net = torch.jit.script(Net().cuda())
training.optimizer = torch.optim.SGD(training.net.parameters())
training.step()
training.step()
training.net = torch.jit.trace(Net().cuda(), torch.zeros(4, 64, device="cuda"))
training.step()
