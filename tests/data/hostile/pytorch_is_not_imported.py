# PyTorch is not imported
# status: 2
# says: did not import PyTorch
print(1)
