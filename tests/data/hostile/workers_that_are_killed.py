# a DataLoader's worker is killed
# status: 1
# says: killed by signal
# says: ENDED BY
# leaves: pymp-*
from training import *

from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, i):
        if i == 9:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.zeros(64)


step()
for batch in DataLoader(Data(), batch_size=4, num_workers=2):
    net(batch.cuda()).sum().backward()
