# it goes on as a user who may not write the recorder's files
# status: 0
# says: FITS h200
from training import *

step()
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
step()
