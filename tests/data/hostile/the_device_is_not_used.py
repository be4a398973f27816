# the device is not used
# status: 2
# says: the program used no CUDA device
import torch
