# a tensor of the device is handed to another process
# status: 0
# says: the other has (1000,)
# says: FITS h200
import torch
import torch.multiprocessing as processes


def work(queue, done):
    print("the other has", tuple(queue.get().shape), flush=True)
    done.set()


if __name__ == "__main__":
    context = processes.get_context("spawn")
    queue, done = context.Queue(), context.Event()
    child = context.Process(target=work, args=(queue, done))
    child.start()
    x = torch.zeros(1000, device="cuda")
    queue.put(x)
    done.wait(100)
    child.join()
