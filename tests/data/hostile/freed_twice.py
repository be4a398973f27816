# freed twice
# status: 0
# says: free gives 0 1
from training import *

import ctypes
runtime = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
address = ctypes.c_void_p(); runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(4096))
step(); print("free gives", runtime.cudaFree(address), runtime.cudaFree(address))
