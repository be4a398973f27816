# `metaprof run` gets SIGTERM, and passes it on
# status: 143
# says: ended by signal 15
# says: ENDED BY
from training import *

step()
os.kill(os.getppid(), signal.SIGTERM)
time.sleep(1000)
