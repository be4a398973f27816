# sys.stdout is an object that cannot be flushed
# options: --steps 1
# status: 0
# says: ended after the steps
from training import *


class Mine:
    def write(self, text):
        return len(text)


sys.stdout = sys.stderr = Mine()
while True:
    step()
