# Python asks for more when the program has ended, and stdin is at its end
# command: {python} -i {program}
# status: 0
# says: FITS h200
from training import *

step()
