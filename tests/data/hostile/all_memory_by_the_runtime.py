# cudaMalloc until nothing is left, then the allocator asks
# status: 1
# says: out of memory
from training import *

import ctypes
step()
runtime = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
address, count = ctypes.c_void_p(), 0
for size in (1 << 30, 1 << 20):
    while runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)) == 0:
        count += 1
print(count, "blocks", flush=True)
torch.zeros(64 << 20, device="cuda")
