"""Records what an unmodified PyTorch program does to device memory, from inside its own process.

`metaprof run` starts a program with this folder's parent on PYTHONPATH and with

    METAPROF_RECORD         a folder that exists; what is recorded is written there (docs/reference/run.md says in which form)
    METAPROF_RECORD_STEPS   end the program after so many optimizer steps; without it the program runs to its end
    METAPROF_RECORD_WORLD   answer for the other ranks of a job of so many
    METAPROF_RECORD_RANKS   a folder, for what ranks send each other that run beside each other
    METAPROF_RECORD_WITH    ranks that are recorded besides: "3,63", or "different" (ranks/peers.py)
    METAPROF_RECORD_ASSUME  what sizes that follow from data are taken to be, a line each (values/assume.py)
    METAPROF_RECORD_VALUES  bytes that are kept of values, and the percentage of the run's time that computing them may take (values/limits.py)
    METAPROF_RECORD_PROGRAM write the program as it calls torch, too; not empty: yes
    METAPROF_RECORD_EVENTS  write the allocator's history with its addresses, too; not empty: yes
    METAPROF_RECORD_UNKNOWN record a version of PyTorch that is newer than the known ones, too; not empty: yes
    METAPROF_RECORD_FIX     a change of the program that is made (program/fixes.py)
    METAPROF_RECORD_DETAIL  of how many steps every request of memory is kept; statistics are kept of all

The recorder imports nothing but the standard library until the program itself imports torch.

    bootstrap   waits for torch, finds out whether it can be recorded
    hooks       what of torch is observed, and how
    phases      from what was observed to setup, forward, backward, optimizer, zero_grad
    statistics  the allocator's statistics by phase, while the program keeps its own view of them
    events      every request of memory, with operator, module and line
    reads       what the program read of the device's data
    operators   the profiler's events in a row
    modules     the program's modules and their paths, and where its parameters are
    models      what the outermost modules are, and what they were called with
    tags        what a storage is for: parameter, gradient, optimizer state, input
    saved       what autograd keeps of a forward that no backward follows
    waiting     blocks that were freed and wait for a stream
    trace       the text in which the requests are written
    log         the text in which the allocator's history is written, with addresses
    devices     what a device says of itself
    distributed one rank of a large job
    agreement   objects that ranks send to each other
    values      what the program's data are: a folder
    sources     which line of the program it was
    names       words of a trace's text
    endings     how a program ends, and how it is ended
    capture     the program as it calls torch; capture_hooks: what it does without an operator; capture_functions: custom functions; capture_nested: nested tensors; capture_text: how it is written
    output      the file that is written
"""
FOLDER = __file__.rpartition("/")[0] + "/"  # of the recorder's own files
