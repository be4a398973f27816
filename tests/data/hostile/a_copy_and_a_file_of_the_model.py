# a copy and a file of the model
# status: 0
# says: FITS h200
from training import *

import copy, io; copy.deepcopy(net); torch.save(net, io.BytesIO()); step()
