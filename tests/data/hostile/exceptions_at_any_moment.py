# a handler of signals raises exceptions at any moment of a step
# status: 0
# says: caught
# says: FITS h200
from training import *


class Alarm(Exception):
    pass


def ring(*_):
    global armed
    if armed:
        armed = False
        raise Alarm


armed = False
step()
signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.2, 0.005)
caught = 0
for _ in range(400):
    try:
        armed = True
        step()
        armed = False
    except Alarm:
        caught += 1
    except (RuntimeError, SystemError):  # a step that was left half way
        armed = False
signal.setitimer(signal.ITIMER_REAL, 0)
print("caught" if caught else "none")
step()
