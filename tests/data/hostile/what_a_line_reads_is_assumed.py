# what a line reads is assumed
# options: --assume what_a_line_reads_is_assumed.py:8=1/4 --assume what_a_line_reads_is_assumed.py:9=7
# status: 0
# says: found 10 7.0
from training import *

x = torch.empty(40, device='cuda')
print('found', len(x.nonzero()),
      x.sum().item())
