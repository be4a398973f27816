# a thread trains for ever, and the main one waits for it
# options: --steps 2
# status: 0
# says: ended after the steps
from training import *


def train():
    while True:
        step()


thread = threading.Thread(target=train)
thread.start()
thread.join()
