# children that are left behind
# status: 0
# says: 1 processes that the program had left running were ended
from training import *

import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True); step()
