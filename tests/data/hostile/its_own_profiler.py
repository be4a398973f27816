# its own profiler
# status: 0
# says: FITS h200
from training import *

with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p: step()
assert any('mm' in e.key for e in p.key_averages())
