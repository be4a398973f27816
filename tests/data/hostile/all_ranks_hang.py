# all ranks hang
# options: --gpus 2 --timeout 60
# status: 2
# says: the program was ended after 60 s
# leaves: torchelastic_*
from ranks import *

time.sleep(1000)
