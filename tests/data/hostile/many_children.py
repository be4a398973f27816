# 100 children by fork that end at once
# status: 0
# says: FITS h200
from training import *

step()
for _ in range(100):
    if os.fork() == 0:
        os._exit(0)
for _ in range(100):
    os.wait()
step()
