# a watch of faulthandler's ends the process from a thread of its own
# status: 1
# says: Timeout (0:00:01)!
# says: ENDED BY
from training import *

import faulthandler
step()
step()
faulthandler.dump_traceback_later(1, exit=True)
time.sleep(1000)
