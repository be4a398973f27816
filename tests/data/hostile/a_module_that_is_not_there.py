# a module that is not there
# status: 1
# says: No module named
import torch, no_such_module
