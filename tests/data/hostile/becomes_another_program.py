# becomes another program
# status: 0
# says: FITS h200
from training import *

step(); os.execv(sys.executable, [sys.executable, '-S', '-c', 'print(5)'])
