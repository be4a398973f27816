# names of modules and classes with blanks, ends of lines and other alphabets
# options: --json run.json
# status: 0
# says: FITS h200
# writes: run.json
from training import *

kind = type("Net\n ü '\"\\ 模", (torch.nn.Linear,), {})
net = torch.nn.Sequential()
for name in ("a b", "line\nend", 'quote"\'', "ü模", "tab\t", "back\\slash", "\udcff", "#", "-"):
    net.add_module(name, kind(64, 64))
net = net.cuda()
optimizer = torch.optim.SGD(net.parameters())
for _ in range(2):
    net(torch.zeros(4, 64, device="cuda")).sum().backward()
    optimizer.step()
