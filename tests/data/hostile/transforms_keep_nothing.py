# what a transform of torch.func has wrapped goes when the program lets it go, although the run is recorded
# status: 0
# says: as much memory after each step
from training import *

parameters = {name: parameter.detach() for name, parameter in net.named_parameters()}


def loss(parameters, x):
    return torch.func.functional_call(net, parameters, (x[None],)).square().mean()


found = []
for _ in range(4):
    gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, torch.zeros(256, 64, device="cuda"))
    del gradients
    step()
    found.append(torch.cuda.memory_allocated())
print("as much memory after each step" if len(set(found[1:])) == 1 else found)
