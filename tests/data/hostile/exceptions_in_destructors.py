# objects whose end raises errors, also at the end of the interpreter
# status: 0
# says: FITS h200
from training import *


class Odd:
    def __del__(self):
        raise RuntimeError("in my destructor")


net.odd = Odd()
for _ in range(3):
    Odd()
    step()
