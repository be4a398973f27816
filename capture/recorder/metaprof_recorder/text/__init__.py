"""How traces and captured programs are written. Knows nothing of torch but what it is told.

    names           dtypes, tensors and quoted words, in both
    arguments       what the calls of a program are given and what they make
    places          in which module and on which source line a call stands
    program_lines   the lines of a program in their order
    program_phases  where the phases of a program begin
"""
