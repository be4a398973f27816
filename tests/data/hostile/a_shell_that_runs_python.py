# a shell that runs Python
# command: sh -c "{python} -c 'import torch; torch.zeros(9, device=\"cuda\")'"
# status: 0
# says: FITS h200
