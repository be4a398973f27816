"""The process that is recorded.

    import_hook   what follows an import of the program's
    output        the file that is written about it
    environment   variables of its environment that decide memory
    process_exit  how it ends, and how it is ended
"""
