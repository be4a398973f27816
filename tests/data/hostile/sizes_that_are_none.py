# sizes that no tensor and no memory has
# status: 0
# says: refused 7
# says: FITS h200
from training import *

import ctypes
runtime = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
runtime.cudaMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
address, host = ctypes.c_void_p(), ctypes.create_string_buffer(64)
refused = 0
for size in (-1, 1 << 62, 1 << 60):
    try:
        torch.empty(size, device="cuda")
    except RuntimeError:
        refused += 1
refused += runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t((1 << 64) - 1)) != 0
refused += runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(1 << 63)) != 0
assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(4096)) == 0
refused += runtime.cudaMemcpy(address, host, 1 << 40, 1) != 0
refused += runtime.cudaMemcpy(host, address, 64, 77) != 0
runtime.cudaGetLastError()
torch.empty(0, device="cuda")
step()
print("refused", refused)
