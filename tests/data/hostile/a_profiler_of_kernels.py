# a profiler of its own, of kernels too (CUPTI), with a schedule, and NVTX
# status: 0
# says: aten::
# says: FITS h200
from training import *

from torch.profiler import ProfilerActivity, profile, schedule
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=schedule(wait=1, warmup=1, active=2), profile_memory=True,
             record_shapes=True, with_stack=True) as profiler:
    for _ in range(4):
        step()
        profiler.step()
print(profiler.key_averages().table(row_limit=5))
torch.cuda.nvtx.range_push("mine")
with torch.autograd.profiler.emit_nvtx():
    step()
torch.cuda.nvtx.range_pop()
torch.cuda.profiler.start()
torch.cuda.profiler.stop()
