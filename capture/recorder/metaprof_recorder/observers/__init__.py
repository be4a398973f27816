"""What of torch is observed, and how. Nothing that the program computes or sees is changed.

    entry_points  functions by which a program loads, saves and changes modes, and the ranges that it names
"""
