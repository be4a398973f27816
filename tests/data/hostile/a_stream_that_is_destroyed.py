# a stream and an event are destroyed while they are in use
# status: 0
# says: refused
# says: FITS h200
from training import *

import ctypes
runtime = ctypes.CDLL("libcudart.so." + torch.version.cuda.split(".")[0])
stream, event = ctypes.c_void_p(), ctypes.c_void_p()
assert runtime.cudaStreamCreate(ctypes.byref(stream)) == 0 and runtime.cudaEventCreate(ctypes.byref(event)) == 0
side = torch.cuda.ExternalStream(stream.value)
with torch.cuda.stream(side):
    x = torch.zeros(1 << 20, device="cuda")
assert runtime.cudaEventRecord(event, stream) == 0
assert runtime.cudaStreamDestroy(stream) == 0 and runtime.cudaEventDestroy(event) == 0
if runtime.cudaStreamSynchronize(stream) and runtime.cudaEventSynchronize(event) and runtime.cudaStreamDestroy(stream):
    print("refused")
runtime.cudaGetLastError()
del x
step()
