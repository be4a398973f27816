import copy
import gc
import pickle
import sys
import weakref

import torch

net = torch.nn.Linear(32, 32).cuda()
weight = net.weight
x = torch.zeros(4, 32, device="cuda")
for _ in range(2):
    y = net(x)
    print(sys.getrefcount(x), sys.getrefcount(y), sys.getrefcount(weight), sys.getrefcount(net))
    print(weakref.getweakrefcount(x), weakref.getweakrefs(y), weakref.getweakrefcount(weight))
    print(len(gc.get_referrers(x)), len(gc.get_referrers(y)), len(gc.get_referrers(weight)))
    loss = y.sum()
    loss.backward()
    del y, loss
died = []
z = torch.zeros(8, device="cuda")
reference = weakref.ref(z, lambda _: died.append("z"))
view = z[2:]
del z
print(died, reference(), torch.cuda.memory_allocated())
del view
twin = copy.deepcopy(net)
print(len(pickle.dumps(net.state_dict())), sorted(vars(twin)) == sorted(vars(net)), vars(weight))
print(torch.cuda.memory_allocated())
del net, twin, weight
print(torch.cuda.memory_allocated())
print("the program has ended")
