# memory taken from the runtime
# status: 0
# says: outside the allocator: 64.0 MiB
from training import *

import ctypes
address = ctypes.c_void_p()
torch.cuda.init(); runtime = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(64 << 20)) == 0; step()
