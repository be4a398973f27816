# functions of Python are replaced that a recorder would call
# status: 0
# says: FITS h200
from training import *

import builtins
import json
import pathlib
step()


def none(*_, **__):
    raise RuntimeError("taken away")


json.dumps = builtins.open = time.monotonic = time.time_ns = none
step()
