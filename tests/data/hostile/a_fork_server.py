# children by forkserver that use the device
# status: 0
# says: sums [0.0, 0.0]
# says: Ranks
import multiprocessing

import torch


def work(number):
    return torch.zeros(1000, device="cuda").sum().item()


if __name__ == "__main__":
    torch.zeros(9, device="cuda")
    with multiprocessing.get_context("forkserver").Pool(2) as pool:
        print("sums", pool.map(work, range(2), chunksize=1))
        pool.close()  # else they are ended by a signal, some before they have said what they took
        pool.join()
