# a whole step as a CUDA graph, and a callable as graphs
# status: 0
# says: FITS h200
from training import *

side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(graph):
    net(torch.zeros(4, 64, device="cuda")).sum().backward()
    optimizer.step()
for _ in range(3):
    graph.replay()
graphed = torch.cuda.make_graphed_callables(torch.nn.Linear(64, 8).cuda(), (torch.zeros(4, 64, device="cuda"),))
graphed(torch.zeros(4, 64, device="cuda")).sum().backward()
