# a loop that another program ends
# command: timeout 30 {python} {program}
# status: 124
# says: FITS h200
from training import *

while True:
    step()
    time.sleep(0.2)
