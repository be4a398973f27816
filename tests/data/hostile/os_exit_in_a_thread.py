# os._exit in a thread while another trains
# status: 8
# says: ENDED BY
from training import *


def leave():
    time.sleep(1)
    os._exit(8)


step()
threading.Thread(target=leave, daemon=True).start()
while True:
    step()
