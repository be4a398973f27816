# the program ends within a capture
# status: 3
# says: ENDED BY
from training import *

step()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    x = torch.zeros(1000, device="cuda")
    os._exit(3)
