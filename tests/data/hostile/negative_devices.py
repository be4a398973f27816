# devices with negative numbers
# status: 0
# says: refused 2
# says: FITS h200
from training import *

import ctypes
runtime = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
refused = int(runtime.cudaSetDevice(-1) == 101)
runtime.cudaGetLastError()  # else PyTorch's next check finds it
try:
    torch.zeros(1, device="cuda:-5")
except RuntimeError:
    refused += 1
step()
print("refused", refused)
