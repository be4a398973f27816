# a graph that cannot be captured
# status: 0
# says: refused: True
from training import *

x = torch.zeros(4, device='cuda')
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()): x.sum().item()
except RuntimeError as error: print('refused:', 'captur' in str(error))
step()
