# an endless recursion
# status: 1
# says: RecursionError
from training import *

def f(): f()
step(); f()
