# PyTorch is imported twice
# status: 0
# says: FITS h200
from training import *

step()
for name in [name for name in sys.modules if name.split('.')[0] == 'torch']: del sys.modules[name]
try: import torch
except BaseException as error: print('second:', type(error).__name__)
