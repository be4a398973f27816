"""A device that is not there: a function is called in the user's own process, on tensors that say that they are on a GPU.

Such tensors have sizes, dtypes and a device, and no memory (torch's FakeTensor). Tensors of the host are real ones. So a step can be
captured without a GPU, without the emulated device, and without a copy of a weight.

    device      tensors of the device, and calls on them
    cuda        what a program asks about it
    values      what the host reads of the device is what it would read, or refused
    backward    a backward, in the place of the engine's
    steps       where the phases of a function begin
    recording   a function's calls as a program: what `metaprof run --save` saves
"""
