# `metaprof run` is killed: the program ends, the recorder's folder stays
# status: -9
# says: mine
# leaves: metaprof-run-*
from training import *

print("mine", flush=True)
step()
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(1000)
