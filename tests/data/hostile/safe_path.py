# a Python that leaves the script's folder out of its path
# command: {python} -P {program}
# status: 0
# says: FITS h200
import torch

torch.zeros(9, device="cuda")
