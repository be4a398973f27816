# a block that a side stream uses, too, comes back at once: on a device it comes back later, and the report says so
# status: 0
# says: a second stream uses blocks of up to 12.0 MiB (a_block_that_a_side_stream_uses.py:11). They come back at once here
# says: FITS h200
from training import *

side = torch.cuda.Stream()


def lend(*_):
    block = torch.zeros(12 << 20, dtype=torch.uint8, device="cuda")
    with torch.cuda.stream(side):
        block.add_(1)
    block.record_stream(side)


net.register_forward_hook(lend)
step()
step()
