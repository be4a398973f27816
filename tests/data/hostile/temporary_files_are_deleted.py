# it deletes all temporary files, the recorder's among them
# status: 2
# says: was deleted while the program ran
from training import *

import shutil
step()
shutil.rmtree(os.environ["TMPDIR"])
step()
