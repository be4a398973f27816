# SIGBUS: a mapped file that was made shorter
# status: 135
# says: ended by signal 7
# says: ENDED BY
from training import *

import mmap
step()
with open("mapped", "w+b") as file:
    file.truncate(8192)
    content = mmap.mmap(file.fileno(), 8192)
    file.truncate(0)
    content[0]
