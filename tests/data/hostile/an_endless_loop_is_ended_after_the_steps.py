# an endless loop is ended after the steps
# options: --steps 2
# status: 0
# says: ended after the steps
from training import *

while True: step()
