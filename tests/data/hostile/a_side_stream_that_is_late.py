# a block that a side stream uses is not given again before somebody waits for that stream: the reserved memory has two bounds
# options: --device-clock late
# status: 0
# says: kept
# says: reserved (12.0 MiB if streams are done at once, 24.0 MiB if they are late: a_side_stream_that_is_late.py:15)
# never: a second stream uses
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
