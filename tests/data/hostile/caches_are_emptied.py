# caches are emptied and peaks forgotten all the time
# status: 0
# says: FITS h200
from training import *

for _ in range(5):
    step()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    torch.cuda.ipc_collect()
    torch.cuda.synchronize()
    assert torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated()
