# children that refuse to end
# status: 0
# says: that the program had left running were ended
from training import *

import subprocess; step()
for _ in range(3): subprocess.Popen(['sh', '-c', 'trap "" TERM; sleep 1000 & wait; wait'])
