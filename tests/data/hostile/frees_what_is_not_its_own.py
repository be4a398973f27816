# cudaFree of the host's memory, of the middle of a block, and of what torch holds
# status: 0
# says: free gives 1 1 0
# says: FITS h200
from training import *

import ctypes
runtime = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
runtime.cudaFree.argtypes = [ctypes.c_void_p]
step()
x = torch.zeros(64 << 20, device="cuda")
host = ctypes.create_string_buffer(4096)
print("free gives", runtime.cudaFree(ctypes.addressof(host)), runtime.cudaFree(x.data_ptr() + 4096), runtime.cudaFree(x.data_ptr()))
runtime.cudaGetLastError()
step()
