"""The program as it calls PyTorch (docs/reference/program.md of metaprof).

    capture       what is captured, and what the parts below share
    dispatch      how calls of operators are seen, before autocast and autograd
    operators     calls of operators as lines
    values        the numbers of tensors, and when each tensor goes
    modes         streams, gradients and the like, where they change
    tensors       what is known of a tensor
    calls         calls in a row, and the tensors that have names in them
    signature     what of an operator's schema the text of its calls needs
    refcounts     when the program's own last handle of a tensor goes, although autograd holds the tensor
    observers     what the program does without calling an operator: a folder
    backward      one call, and what the program's hooks call while it runs
    functions     custom functions
    regions       checkpointed regions, and what they and modules are given
    optimizers    constructors and steps
    transforms    vmap, grad, jvp of torch.func
    nested        nested tensors, and losses of DTensors
    sparse        sparse tensors
    distributed   DTensors, collectives, and storages that are resized
    storages      storages that a program makes by themselves
    lists         lists of integers from which sizes of results follow
    dtypes        where the dtypes that calls are given come from
    unseen        what is not in the program, and the share of it
    device        what the device is asked; fake/device has the one that is not there
"""
