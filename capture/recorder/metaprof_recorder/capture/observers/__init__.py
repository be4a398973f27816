"""What the program does without calling an operator.

    tensors     `.data`, `.grad`, `.dtype` and the like
    autocast    regions of autocast
    checkpoint  checkpointed regions
    autograd    hooks on saved tensors
    cuda        the allocator's cache, and CUDA graphs
    compiler    compiled functions
"""
from metaprof_recorder.capture.observers import autocast, autograd, checkpoint, compiler, cuda, tensors
from metaprof_recorder.pytorch.higher_order import passing


def install(capture):
    tensors.install(capture)
    operator = capture.torch._ops.HigherOrderOperator
    capture.patches.set(operator, "dispatch", passing(capture.torch, operator.dispatch))
    for observer in (autocast, checkpoint, autograd, cuda, compiler):
        observer.install(capture)
