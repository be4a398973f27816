# a syntax error
# status: 1
# says: SyntaxError
import torch; =
