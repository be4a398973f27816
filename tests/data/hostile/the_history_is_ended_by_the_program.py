# the history is ended by the program
# status: 0
# says: FITS h200
from training import *

step(); torch.cuda.memory._record_memory_history(None); step()
