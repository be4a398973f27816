# forwards without a backward, and hooks that pack what is saved: nobody unpacks it
# status: 0
# says: unpacked 0
# never: unpacked 1
import torch

unpacked = 0


def unpack(tensor):
    global unpacked
    unpacked += 1
    return tensor


net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).cuda()
with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
    for _ in range(2):
        out = net(torch.zeros(8, 64, device="cuda"))
        del out
print("unpacked", unpacked)
