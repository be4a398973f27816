# more memory of the host is pinned than there is
# status: 1
# says: Error
# says: ENDED BY
from training import *

step()
torch.empty(1 << 46, dtype=torch.uint8, pin_memory=True)
