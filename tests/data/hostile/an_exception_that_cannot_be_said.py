# an exception whose text cannot be made
# status: 1
# says: <exception str() failed>
# says: ENDED BY
from training import *


class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no text")


step()
raise Odd
