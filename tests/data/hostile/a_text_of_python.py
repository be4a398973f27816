# a text of Python
# command: {python} -c "import torch; torch.zeros(9, device='cuda')"
# status: 0
# says: FITS h200
