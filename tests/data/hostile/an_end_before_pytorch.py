# an end before PyTorch
# status: 4
# says: ended before it had imported PyTorch
import sys; sys.exit(4)
