# the JSON file would be of the kernel's: it is refused before the program runs, or the text is there
# options: --json /proc/run.json
# status: 2
# says: /proc/run.json: cannot be written
from training import *

step()
