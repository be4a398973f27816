# use after free
# status: 0
# says: copy gives 1
from training import *

import ctypes
runtime = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
x = torch.zeros(64 << 20, device="cuda"); address = x.data_ptr(); del x; torch.cuda.empty_cache()
print("copy gives", runtime.cudaMemcpy(ctypes.create_string_buffer(4), ctypes.c_void_p(address), ctypes.c_size_t(4), 2))
