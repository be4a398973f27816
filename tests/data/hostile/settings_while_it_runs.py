# the allocator's settings are changed while it runs
# status: 0
# says: FITS h200
from training import *

step()
torch.cuda.memory._set_allocator_settings("expandable_segments:True")
kept = torch.zeros(64 << 20, device="cuda")
step()
torch.cuda.memory._set_allocator_settings("expandable_segments:False,max_split_size_mb:100")
step()
