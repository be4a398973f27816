# an optimizer step within backward
# status: 0
# says: FITS h200
from training import *

for p in net.parameters():
    one = torch.optim.SGD([p], lr=0.1); p.register_post_accumulate_grad_hook(lambda p, one=one: (one.step(), one.zero_grad()) and None)
for _ in range(2): net(torch.zeros(4, 64, device="cuda")).sum().backward()
