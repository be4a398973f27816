# the JSON file is a folder: it is refused before the program runs
# options: --json {here}
# status: 2
# says: cannot be written
# never: was run
from training import *

print("was run")
