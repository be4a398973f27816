# steps without an optimizer
# options: --steps 1
# status: 0
# says: FITS h200
from training import *

for _ in range(3): net(torch.zeros(4, 64, device='cuda'))
