# `metaprof run` in a program of `metaprof run`
# command: {metaprof} run -- {python} {program}
# status: 0
# says: FITS h200
from training import *

step()
