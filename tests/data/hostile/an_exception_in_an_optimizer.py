# an exception in an optimizer
# status: 1
# says: in my step
import training


class Mine(training.torch.optim.SGD):
    def step(self, closure=None):
        raise RuntimeError("in my step")


training.optimizer = Mine(training.net.parameters())
training.step()
