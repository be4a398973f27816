# the program ends at once, a child of it trains on
# status: 2
# says: 1 processes that the program had left running were ended
import os
import time

if os.fork():
    os._exit(0)
os.setsid()
import torch

while True:
    torch.zeros(9)
    time.sleep(0.1)
