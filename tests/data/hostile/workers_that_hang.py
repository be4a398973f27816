# a DataLoader's worker never gives its batch
# options: --timeout 40
# status: 2
# says: the program was ended after 40 s
from training import *

from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        time.sleep(1000)


step()
step()
for batch in DataLoader(Data(), batch_size=4, num_workers=2):
    pass
