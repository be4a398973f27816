# the recorder's own objects are destroyed
# status: 0
# says: FITS h200
from training import *

step()
for name in [name for name in sys.modules if name.startswith("metaprof_recorder")]:
    del sys.modules[name]
step()
