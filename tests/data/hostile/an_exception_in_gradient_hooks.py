# hooks of gradients, of saved tensors and of optimizers raise errors that are caught
# status: 0
# says: caught 4
# says: FITS h200
from training import *

caught = 0


def fails(*_):
    raise ValueError("in my hook")


def tried():
    global caught
    try:
        step()
    except ValueError:
        caught += 1


for register in (net[0].weight.register_hook, net[0].weight.register_post_accumulate_grad_hook, net.register_full_backward_hook,
                 optimizer.register_step_pre_hook):
    hook = register(fails)
    tried()
    hook.remove()
with torch.autograd.graph.saved_tensors_hooks(fails, fails):
    try:
        net(torch.zeros(4, 64, device="cuda"))
    except ValueError:
        pass
step()
print("caught", caught)
