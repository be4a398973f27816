# Python's own profiler
# command: {python} -m cProfile -s tottime {program}
# status: 0
# says: function calls
# says: FITS h200
from training import *

step()
