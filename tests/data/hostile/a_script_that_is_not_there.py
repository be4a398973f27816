# a script that is not there
# command: {python} {here}/none.py
# status: 2
# says: can't open file
# says: ended before it had imported PyTorch
