"""What a program reads of the device is what it would read.

Memory of an emulated device holds nothing, and kernels do nothing. So every storage of the device has a recipe: the call that wrote it last, and the
recipes of what that call took, down to what the host wrote, constants and shapes. Nothing is computed until the program asks; then
just what the answer needs is computed on the CPU, and no more than the limits allow.

    recipes       what a recipe is made of
    operators     what an operator does to its arguments, as its schema says
    storages      which recipe a storage has now; writes make new ones
    watch         sees every call on the device; hook: how
    unseen        copies between host and device that no call of an operator makes
    backward      what a backward does is not known
    graphs        what CUDA graphs do is not known
    device_reads  what the program read, by line and operator
    evaluate      computes what a recipe stands for; cpu: what the CPU does not have
    answers       what a program is told that reads, and where the answer comes from
    assume        what the user says that the program's data are: --assume
    checks        what a check must have found for the program to go on
    limits        how much is kept and computed
"""
from metaprof_recorder.values.answers import Answers
from metaprof_recorder.values.assume import Assumptions
from metaprof_recorder.values.limits import Limits
from metaprof_recorder.values.watch import Watch


def begin(torch, library, reads, sources, environment, before_call):
    """Sees the calls of this thread from now on, and those that its backward makes in others. `reads`: who is told what a read gives; `before_call()`
    is called before each that concerns the device. False: it is switched off."""
    limits = Limits(environment.get("METAPROF_RECORD_VALUES") or "")
    assumptions = Assumptions(environment.get("METAPROF_RECORD_ASSUME") or "", sources)
    if limits.on:
        answers = Answers(torch, limits, assumptions, reads, sources)
        watch = Watch(torch, limits, assumptions, answers, before_call=before_call)
        watch.begin(library)
        reads.content = watch.unseen.read
    return limits.on
