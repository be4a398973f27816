# megabytes without an end of line, on both outputs, that are no text
# status: 0
# says: FITS h200
from training import *

step()
for _ in range(20):
    os.write(1, bytes(range(256)) * 1000)
    os.write(2, bytes(range(256)) * 1000)
print()
