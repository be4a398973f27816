# it changes the folder and deletes it; the report's name counts from where `metaprof run` was started
# options: --json run.json --save step.mp
# status: 0
# says: FITS h200
# writes: run.json
# writes: step.mp
from training import *

import tempfile
folder = tempfile.mkdtemp()
os.chdir(folder)
os.rmdir(folder)
step()
