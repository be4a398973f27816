# backward twice
# status: 1
# says: a second time
from training import *

loss = net(torch.zeros(4, 64, device='cuda')).sum(); loss.backward(); loss.backward()
