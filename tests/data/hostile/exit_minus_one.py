# sys.exit(-1) is 255
# status: 255
# says: ENDED BY
from training import *

step()
sys.exit(-1)
