# very many operators of the host before the first step, of which no record is kept
# status: 0
# says: little memory
# never: much memory
import resource

from training import *

x = torch.zeros(4)
for _ in range(1000):
    y = x + 1
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(200_000):
    y = x + 1
more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
print("little memory" if more < 20 else "much memory", more, "MiB")
step()
