# more steps are asked for than there are
# options: --steps 100
# status: 0
# says: FITS h200
# never: ended after the steps
from training import *

step()
