# a page cannot be written: the text is there
# options: --html /dev/full
# status: 2
# says: /dev/full: cannot be written (No space left on device)
# says: FITS h200
from training import *

step()
