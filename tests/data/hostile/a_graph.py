# a graph
# status: 0
# says: FITS h200
from training import *

x = torch.zeros(4, 64, device="cuda"); graph = torch.cuda.CUDAGraph()
with torch.no_grad():
    net(x)
    with torch.cuda.graph(graph): net(x)
graph.replay(); step()
