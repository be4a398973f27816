# two threads import PyTorch at the same time
# status: 0
# says: FITS h200
import threading


def use():
    import torch
    torch.zeros(9, device="cuda")


threads = [threading.Thread(target=use) for _ in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
