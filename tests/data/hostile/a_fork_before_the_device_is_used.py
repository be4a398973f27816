# a fork before the device is used
# status: 0
# says: Ranks
import os, torch
child = os.fork()
torch.zeros(1000, device="cuda")
if child: os.wait()
