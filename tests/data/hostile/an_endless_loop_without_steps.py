# an endless loop without steps
# options: --timeout 25
# status: 2
# says: the program was ended after 25 s
from training import *

step()
while True: time.sleep(0.01)
