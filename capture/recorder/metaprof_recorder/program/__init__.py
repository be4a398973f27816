"""The program that is recorded: its files, its modules, and changes of it.

    sources      which line of the program it was
    variables    what running functions and objects refer to
    modules      its modules by their paths, and where its parameters are
    model_names  what it calls each of several models
    models       what the outermost modules are, and what they were called with
    trained      what optimizers change
    fixes        changes that the program could use, and one of them made
"""
