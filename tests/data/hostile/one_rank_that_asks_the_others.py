# one rank of a large job waits for a value of another rank
# options: --world-size 4 --rank 0 --timeout 30
# status: 2
# says: the program was ended after 30 s
import datetime

import torch
import torch.distributed as dist

x = torch.ones(1000, device="cuda")
store = dist.TCPStore("127.0.0.1", 0, 1, True, timeout=datetime.timedelta(seconds=1000))
store.get("of another rank")
