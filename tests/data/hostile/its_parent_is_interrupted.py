# `metaprof run` gets SIGINT, which it passes on: the program ends as it would alone
# status: 130
# says: ENDED BY KeyboardInterrupt
from training import *

step()
os.kill(os.getppid(), signal.SIGINT)
time.sleep(1)
step()
