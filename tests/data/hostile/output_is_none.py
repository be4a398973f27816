# sys.stdout and sys.stderr are None, and it is ended after the steps
# options: --steps 1
# status: 0
# says: ended after the steps
from training import *

sys.stdout = sys.stderr = None
while True:
    step()
