# nobody reads what it says: it ends by an error of its own
# command: sh -c "{python} {program} | true; exit 3"
# status: 3
# says: ENDED BY
from training import *

step()
for _ in range(1000):
    print("x" * 1000)
