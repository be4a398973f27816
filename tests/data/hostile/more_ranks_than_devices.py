# more ranks than devices
# options: --timeout 200
# status: 1
# says: invalid device ordinal
# leaves: torchelastic_*
from ranks import *

pass
