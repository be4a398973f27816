"""Calls the function that a file has (_capture.py writes it). Run as a program; imports nothing of the package."""

import pickle
import sys

if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        sys.path[:] = pickle.load(file)
        function, args, kwargs = pickle.load(file)
    function(*args, **kwargs)
