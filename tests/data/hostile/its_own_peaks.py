# its own peaks
# status: 0
# says: FITS h200
from training import *

torch.zeros(1 << 20, device='cuda'); step()
assert torch.cuda.max_memory_allocated() >= 4 << 20
torch.cuda.reset_peak_memory_stats()
assert torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated()
