# cudaDeviceReset while torch holds memory
# status: 0
# says: reset gives
# says: FITS h200
from training import *

import ctypes
runtime = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
step()
print("reset gives", runtime.cudaDeviceReset(), flush=True)
try:
    step()
except RuntimeError as error:
    print("after it:", str(error)[:60])
