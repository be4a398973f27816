# ended after the steps while workers wait
# options: --steps 2
# status: 0
# leaves: pymp-*
# says: ended after the steps
from training import *

from torch.utils.data import DataLoader, IterableDataset


class Data(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.zeros(64)


for batch in DataLoader(Data(), batch_size=4, num_workers=2, persistent_workers=True, pin_memory=True):
    net(batch.cuda()).sum().backward()
    optimizer.step()
