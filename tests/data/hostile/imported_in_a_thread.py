# a thread imports PyTorch and trains
# status: 0
# says: FITS h200
import threading


def train():
    from training import step
    step()


thread = threading.Thread(target=train)
thread.start()
thread.join()
