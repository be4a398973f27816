# sys.path, sys.meta_path and sys.path_hooks are emptied
# status: 0
# says: FITS h200
from training import *

step()
sys.path.clear()
sys.meta_path.clear()
sys.path_hooks.clear()
step()
