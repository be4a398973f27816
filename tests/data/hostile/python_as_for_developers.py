# Python with all its checks
# command: {python} -X dev -X faulthandler -B -u {program}
# status: 0
# says: FITS h200
from training import *

step()
