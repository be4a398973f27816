# the shell allows it little time (ulimit -t)
# command: sh -c "ulimit -S -t 15; exec {python} {program}"
# status: 152
# says: ended by signal 24
# says: ENDED BY
from training import *

step()
step()
while True:
    pass
