# much output
# status: 0
# says: FITS h200
from training import *

step()
for _ in range(1000): print('x' * 5000)
