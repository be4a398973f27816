"""What of torch is observed, and how. Nothing that the program computes or sees is changed.

    module_calls    calls of modules
    training_calls  backward, steps and construction of optimizers, zero_grad
    activities      what a program does besides training, as far as its thread begins it
    entry_points    functions by which a program loads, saves and changes modes, and the ranges that it names
    out_of_memory   memory runs out
"""
