# its own exit status
# status: 5
# says: ENDED BY
from training import *

step(); sys.exit(5)
