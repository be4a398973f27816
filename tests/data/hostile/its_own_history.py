# its own history
# status: 0
# says: FITS h200
from training import *

torch.cuda.memory._record_memory_history()
step(); assert torch.cuda.memory._snapshot()['device_traces'][0]
