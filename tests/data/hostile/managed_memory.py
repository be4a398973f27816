# memory that host and device share
# status: 0
# says: the host reads b'mine'
# says: FITS h200
from training import *

import ctypes
runtime = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
address = ctypes.c_void_p()
assert runtime.cudaMallocManaged(ctypes.byref(address), ctypes.c_size_t(64 << 20), 1) == 0
ctypes.memmove(address, b"mine", 5)
step()
print("the host reads", ctypes.string_at(address))
