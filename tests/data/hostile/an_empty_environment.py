# the environment is emptied before Python starts: neither the recorder nor the device is there
# command: env -i {python} {program}
# status: 1
# says: the recorder was not loaded
# says: or without its environment
from training import *
