# LBFGS with a closure
# status: 0
# says: FITS h200
from training import *

lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=2)
def closure():
    lbfgs.zero_grad(); loss = net(torch.zeros(4, 64, device="cuda")).sum(); loss.backward(); return loss
lbfgs.step(closure)
