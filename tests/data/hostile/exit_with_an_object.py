# sys.exit of something that is no number
# status: 1
# says: [3, 4]
# says: ENDED BY
from training import *

step()
sys.exit([3, 4])
