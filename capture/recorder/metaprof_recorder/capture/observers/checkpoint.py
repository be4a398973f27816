"""Checkpointed regions (regions.py): where they begin and end, and what they are given."""
import contextlib
import functools
import inspect

from metaprof_recorder.capture.functions import tensors_in


def install(capture):
    """What `checkpoint` calls, for programs hold `checkpoint` itself under names of their own."""
    import torch.utils.checkpoint as checkpoint
    generator, nothing = checkpoint._checkpoint_without_reentrant_generator, checkpoint.noop_context_fn
    names = list(inspect.signature(generator).parameters)[3:]  # of `arguments`, as far as they are the generator's own
    place = names.index("early_stop") if "early_stop" in names else None

    def runs_to_its_end(arguments):
        """Whether what backward does not need is recomputed, too."""
        given = place is None or len(arguments) <= place or arguments[place]
        stops = checkpoint._enable_checkpoint_early_stop
        return not (given if stops is None else stops)

    @functools.wraps(generator)
    def without_reentrant(function, preserve=True, context_fn=nothing, *arguments, **options):
        # Before the function's arguments stand those that say how it is checked: they hold no tensors.
        opened = capture.regions.open("whole" if runs_to_its_end(arguments) else "", given_to(capture.tensors.kind, function, arguments, options))
        if opened and context_fn is not nothing:
            context_fn = capture.regions.selective(context_fn, getattr(checkpoint, "_CachingTorchDispatchMode", ()))
        try:
            yield from generator(function, preserve, context_fn, *arguments, **options)
        finally:
            if opened:
                capture.regions.close()

    apply = checkpoint.CheckpointFunction.apply

    def reentrant(kind, function, preserve, *arguments):
        opened = capture.regions.open("reentrant", given_to(capture.tensors.kind, function, arguments))
        try:
            return apply(function, preserve, *arguments)
        finally:
            if opened:
                capture.regions.close()

    capture.patches.set(checkpoint, "_checkpoint_without_reentrant_generator", without_reentrant)
    capture.patches.set(checkpoint.CheckpointFunction, "apply", classmethod(reentrant))


def given_to(tensor_class, function, *more):
    """The tensors that a call of a function holds: its arguments, those that are bound to it, and variables around it."""
    found = list(tensors_in(tensor_class, more))
    if isinstance(function, functools.partial):
        found += given_to(tensor_class, function.func, function.args, function.keywords)
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # it has no value
            found += tensors_in(tensor_class, cell.cell_contents)
    return found
