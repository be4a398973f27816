# a loop that another program ends
# command: timeout 30 {python} {program}
# status: 124
# says: ENDED BY
from training import *

while True:
    step()
    time.sleep(0.2)
