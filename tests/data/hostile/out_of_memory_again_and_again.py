# 200 requests that cannot be served
# options: --memory 1GiB --context none
# status: 0
# says: refused 200
# says: the program went on
from training import *

refused = 0
for _ in range(200):
    try:
        torch.zeros(1 << 30, device="cuda")
    except torch.OutOfMemoryError:
        refused += 1
    step()
print("refused", refused)
