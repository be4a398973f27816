# it deletes the folder of the recorder, and goes on
# status: 5
# says: was deleted while the program ran
from training import *

import shutil
step()
shutil.rmtree(os.environ["METAPROF_RECORD"])
step()
sys.exit(5)
