# a DataLoader's worker uses the device that its parent has used
# status: 1
# says: Cannot re-initialize CUDA in forked subprocess
# says: ENDED BY
from training import *

from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        return torch.zeros(64, device="cuda")


step()
for batch in DataLoader(Data(), batch_size=4, num_workers=1):
    pass
