# functions of torch are replaced
# status: 0
# says: my step
from training import *

backward, call, stats = torch.Tensor.backward, torch.nn.Module.__call__, torch.cuda.memory_stats
torch.Tensor.backward = lambda tensor, *a, **k: backward(tensor, *a, **k)
torch.nn.Module.__call__ = lambda module, *a, **k: call(module, *a, **k)
torch.cuda.memory_stats = lambda *a: {}
torch.optim.SGD.step = lambda self, closure=None: print('my step')
step()
