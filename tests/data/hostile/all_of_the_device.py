# all of the device
# status: 0
# says: blocks
from training import *

kept = []
try:
    while True: kept.append(torch.empty(1 << 30, device="cuda"))
except torch.OutOfMemoryError: print(len(kept), "blocks")
kept.clear(); step()
