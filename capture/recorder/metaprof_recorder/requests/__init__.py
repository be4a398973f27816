"""Every request of memory, with the operator, the module and the line that made it.

    history        the allocator's history, and the profiler in stretches
    items          the profiler's events in one line
    operators      the profiler's events in the order in which they happened
    matching       which event of the profiler is which entry of the history
    files          writes what follows
    trace          the text in which the requests are written
    allocator_log  the text in which the allocator's history is written, with addresses
    waiting        blocks that were freed and wait for a stream
"""
