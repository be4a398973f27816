# a block that a side stream uses comes back at once: all work is complete when a stream is given it
# status: 1
# says: given while the side stream was busy
# never: if streams are done at once
import sys

import torch

stream = torch.cuda.Stream()


def block():
    return torch.empty(12 << 20, dtype=torch.uint8, device="cuda")


first = block()
where = first.data_ptr()
with torch.cuda.stream(stream):
    first.add_(1)
    first.record_stream(stream)
del first
second = block()
if second.data_ptr() == where:
    sys.exit("given while the side stream was busy")
print("kept")
