"""What several folders need of PyTorch's insides.

    devices             what a device says of itself
    patches             functions of torch that are replaced for a while
    higher_order        operators that take functions, which have no kernel on the recorder's dispatch keys
    functorch_wrappers  the profiler does not see calls within a transform of torch.func
"""
