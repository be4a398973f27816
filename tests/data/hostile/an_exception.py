# an exception
# status: 1
# says: ValueError: mine
from training import *

step(); raise ValueError('mine')
