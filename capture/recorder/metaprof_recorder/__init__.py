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
    METAPROF_RECORD_FIX     changes of the program that are made, one a line (program/fixes.py)
    METAPROF_RECORD_DETAIL  of how many steps every request of memory is kept; statistics are kept of all

The recorder imports nothing but the standard library until the program itself imports torch.

    bootstrap   waits for torch, finds out whether it can be recorded
    recorder    puts what follows together; results: what is written at the end
    observers   what of torch is observed, and how
    phases      from what was observed to setup, forward, backward, optimizer, zero_grad
    requests    every request of memory, with operator, module and line
    storages    what storages are for, and who holds them
    values      what the program's data are, as far as it reads them
    capture     the program as it calls torch; fake: the same without a device
    ranks       jobs of several processes
    process     the process: its environment and its end, and the file that is written about it
    program     the program's source lines and modules, and changes of it
    pytorch     what several of these need of PyTorch's insides
    text        how traces and captured programs are written
"""
FOLDER = __file__.rpartition("/")[0] + "/"  # of the recorder's own files
