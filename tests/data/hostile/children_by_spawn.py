# children by spawn
# status: 0
# says: FITS h200
import torch, torch.multiprocessing as processes
def work(number): torch.zeros(1000, device="cuda")
if __name__ == "__main__": processes.spawn(work, nprocs=2)
