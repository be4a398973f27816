# streams and events
# status: 0
# says: FITS h200
from training import *

a, b, side = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True), torch.cuda.Stream()
a.record()
with torch.cuda.stream(side): x = torch.zeros(1000, device="cuda"); x.record_stream(torch.cuda.default_stream())
b.record(); torch.cuda.synchronize(); assert a.elapsed_time(b) > 0; step()
