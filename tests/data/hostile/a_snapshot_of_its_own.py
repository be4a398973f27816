# a snapshot of memory by itself, as a file
# status: 0
# says: FITS h200
# writes: snapshot.pickle
from training import *

torch.cuda.memory._record_memory_history(max_entries=1000)
step()
torch.cuda.memory._dump_snapshot("snapshot.pickle")
torch.cuda.memory._record_memory_history(enabled=None)
step()
