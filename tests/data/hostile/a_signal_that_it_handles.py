# a signal that it handles
# status: 0
# says: FITS h200
from training import *

signal.signal(signal.SIGUSR1, lambda *_: step()); os.kill(os.getpid(), signal.SIGUSR1); step()
