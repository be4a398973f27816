"""What storages are for, and who holds them.

    tags           parameters, buffers, inputs, gradients, optimizer state
    saved_tensors  what autograd keeps of a forward that no backward follows
    holders        the program's variables that lead to what is alive
    peaks          what is alive when more is allocated than ever before
"""
