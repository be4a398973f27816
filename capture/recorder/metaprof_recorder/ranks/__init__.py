"""Jobs of several processes, of which one or a few run.

    process_groups      one rank of a large job, run alone
    peers               ranks that run beside each other, and what they send each other
    object_collectives  objects that ranks send to each other
"""
