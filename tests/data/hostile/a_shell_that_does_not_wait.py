# the program goes on behind a shell that has ended
# command: sh -c "{python} {program} & exit 0"
# status: 2
# says: 1 processes that the program had left running were ended
import time

time.sleep(1000)
