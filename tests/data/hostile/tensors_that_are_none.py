# tensors of the device without data
# status: 0
# says: FITS h200
from training import *

from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode(allow_non_fake_inputs=True):
    torch.zeros(1 << 40, device="cuda")
torch.zeros(1 << 40, device="meta")
step()
