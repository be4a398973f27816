# more ranks than devices
# options: --timeout 200
# status: 1
# says: invalid device ordinal
from ranks import *

pass
