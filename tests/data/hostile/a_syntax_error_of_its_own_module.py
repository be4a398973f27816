# a module of its own cannot be compiled
# status: 1
# says: SyntaxError
# says: ENDED BY
from training import *

step()
open("mine.py", "w").write("x = = 1\n")
import mine
