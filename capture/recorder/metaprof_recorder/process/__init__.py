"""The process that is recorded.

    output        the file that is written about it
    environment   variables of its environment that decide memory
    process_exit  how it ends, and how it is ended
"""
