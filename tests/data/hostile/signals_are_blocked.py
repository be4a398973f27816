# all signals are blocked, and it does not end
# options: --timeout 30
# status: 2
# says: the program was ended after 30 s
from training import *

signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
while True:
    step()
    time.sleep(0.5)
