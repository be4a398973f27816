"""Pieces of work that each run in a process of their own, after what is imported once."""
import os
import sys
import traceback


def each_in_a_fork(lines, work):
    """work(line) for each line, one after the other. What fails is named; the others go on."""
    for number, line in enumerate(lines):
        os.environ["RANK"] = str(number)  # by which the report tells them apart
        child = os.fork()
        if child == 0:
            try:
                work(line)
            except Exception:
                traceback.print_exc(limit=-3)
                sys.stderr.flush()
                os._exit(1)
            os._exit(0)  # without taking the libraries apart, which takes longer than two steps
        _, status = os.waitpid(child, 0)
        if status:
            print(f"FAILED {line}", file=sys.stderr, flush=True)
