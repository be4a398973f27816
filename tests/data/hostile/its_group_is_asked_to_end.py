# SIGTERM to the whole group of processes
# status: 143
# says: ended by signal 15
# says: ENDED BY
from training import *

step()
os.killpg(0, signal.SIGTERM)
time.sleep(1000)
