# four threads train nets of their own at the same time, and change often
# status: 0
# says: FITS h200
from training import *

sys.setswitchinterval(1e-5)


def train():
    mine = torch.nn.Linear(64, 64).cuda()
    own = torch.optim.AdamW(mine.parameters())
    for _ in range(20):
        mine(torch.zeros(4, 64, device="cuda")).sum().backward()
        own.step()
        own.zero_grad()


threads = [threading.Thread(target=train) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
step()
