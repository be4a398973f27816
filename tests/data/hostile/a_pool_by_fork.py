# a pool of processes by fork, after the device was used, that computes on the host
# status: 0
# says: squares [0, 1, 4, 9]
# says: FITS h200
from training import *

import multiprocessing


def square(number):
    return number * number


step()
with multiprocessing.get_context("fork").Pool(2) as pool:
    print("squares", pool.map(square, range(4)))
step()
