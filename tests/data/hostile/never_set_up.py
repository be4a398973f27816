# an endless loop while it is set up
# options: --timeout 30
# status: 2
# says: the program was ended after 30 s
# says: the program ended before its first phase was over
from training import *

while True:
    pass
