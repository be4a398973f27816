# `metaprof run` in a program of `metaprof run`: the inner one reports, the outer one has recorded nothing
# command: {metaprof} run -- {python} {program}
# status: 2
# says: FITS h200
# says: the recorder was not loaded
from training import *

step()
