# `metaprof run` gets SIGINT, which does not end it
# status: 0
# says: FITS h200
from training import *

step()
os.kill(os.getppid(), signal.SIGINT)
time.sleep(1)
step()
