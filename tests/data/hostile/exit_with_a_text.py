# exit with a text
# status: 1
# says: my words
from training import *

step(); sys.exit('my words')
