# threads
# status: 0
# says: FITS h200
from training import *

threads = [threading.Thread(target=lambda: torch.zeros(1000, device='cuda')) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]; step()
