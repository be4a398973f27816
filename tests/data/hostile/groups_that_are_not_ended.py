# process groups of two ranks, parts of them, and none is ended
# options: --gpus 2 --timeout 300
# status: 0
# leaves: torchelastic_*
# says: FITS h200
from ranks import *

alone = dist.new_group([0])
if rank == 0:
    dist.all_reduce(x, group=alone)
found = [None, None]
dist.all_gather_object(found, {"rank": rank})
assert [each["rank"] for each in found] == [0, 1], found
dist.barrier()
