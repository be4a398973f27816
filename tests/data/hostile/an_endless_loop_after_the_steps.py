# an endless loop after the steps
# options: --steps 1
# status: 0
# says: ended after the steps
from training import *

step()
while True: time.sleep(0.01)
