"""Operators of PyTorch's own in Python that take functions (flex_attention, cond, a compiled region) have no kernel where calls are seen: on the dispatch keys on
which the recorder looks at calls. They are passed on to the next key; what they call there is seen.
"""
OF_VALUES = "Fake"  # values/hook.py
OF_SIZES = "TESTING_ONLY_GenericMode"  # the same: of sizes within a backward


def passing(torch, original):
    """What stands in the place of HigherOrderOperator.dispatch, `original`."""
    of_values, of_sizes = map(torch._C._parse_dispatch_key, (OF_VALUES, OF_SIZES))
    of_capture = torch._C.DispatchKey.PreDispatch

    def dispatch(self, given, /, *arguments, **options):
        if given in (of_values, of_sizes) or (given == of_capture and of_capture not in self.py_kernels):
            keys = torch._ops._compute_keyset(arguments, options, self.non_fallthrough_keys)
            given = keys.remove(of_capture).remove(of_values).remove(of_sizes).highestPriorityTypeId()
        return original(self, given, *arguments, **options)

    return dispatch
