# anomalies are looked for
# status: 0
# says: FITS h200
from training import *

with torch.autograd.detect_anomaly(): step()
