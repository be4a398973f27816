# a DataLoader's worker raises an error
# status: 1
# says: ValueError: of a worker
# says: ENDED BY
from training import *

from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        raise ValueError("of a worker")


step()
for batch in DataLoader(Data(), batch_size=4, num_workers=2, pin_memory=True, persistent_workers=True):
    net(batch.cuda()).sum().backward()
