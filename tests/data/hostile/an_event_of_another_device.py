# an event of another device
# options: --gpus 2
# status: 0
# says: refused: 
from training import *

event = torch.cuda.Event(); event.record(torch.cuda.Stream(0))
try: event.record(torch.cuda.Stream(1))
except RuntimeError as error: print('refused:', str(error)[:40])
step()
