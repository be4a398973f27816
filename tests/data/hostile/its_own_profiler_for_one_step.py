# a profiler of its own for one step: the steps after it are recorded as those before
# status: 0
# says: aten::cat
from training import *

with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as p:
    step()
step()
x = torch.zeros(1 << 20, device="cuda", requires_grad=True)
torch.cat([x, x, x]).square().sum().backward()
