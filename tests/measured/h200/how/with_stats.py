"""Runs a program as it is and writes the allocator's figures at its end.   with_stats.py OUT PROGRAM ARGS..."""

import atexit, json, runpy, sys, os

out, prog = sys.argv[1], sys.argv[2]
sys.argv = sys.argv[2:]
sys.path.insert(0, os.path.dirname(os.path.abspath(prog)))


def done():
    import torch

    if torch.cuda.is_initialized():
        json.dump(
            {
                f"{d}": {
                    k: v
                    for k, v in torch.cuda.memory_stats(d).items()
                    if "bytes" in k and ".all." in k or k.startswith("num")
                }
                for d in range(torch.cuda.device_count())
            }
            | {"pid": os.getpid()},
            open(out, "w"),
        )


atexit.register(done)
runpy.run_path(prog, run_name="__main__")
