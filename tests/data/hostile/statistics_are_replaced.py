# torch's own functions of statistics give nonsense, below those that programs call
# status: 0
# says: FITS h200
from training import *

step()
torch._C._cuda_memoryStats = lambda device: None
torch._C._cuda_resetPeakMemoryStats = lambda device: 1 / 0
torch.cuda.memory_allocated = lambda *_: -1
step()
