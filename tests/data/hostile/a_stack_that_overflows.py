# a stack that overflows
# status: 139
# says: ended by signal 11
# says: ENDED BY
from training import *


def deeper():
    return max([1], key=lambda _: deeper())


step()
sys.setrecursionlimit(1 << 30)
deeper()
