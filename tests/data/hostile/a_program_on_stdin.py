# the program itself comes from stdin
# command: {python} -
# stdin: import torch; torch.zeros(9, device="cuda")
# status: 0
# says: FITS h200
