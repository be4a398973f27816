# blocks of the allocator by hand, freed twice
# status: 1
# says: invalid device pointer
# says: ENDED BY
from training import *

address = torch.cuda.caching_allocator_alloc(1 << 20)
step()
torch.cuda.caching_allocator_delete(address)
torch.cuda.caching_allocator_delete(address)
