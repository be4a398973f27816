# tensors are swapped, before the steps and within one; nothing refers to them, and the saved program is what ran
# options: --save {here}/step.mp
# status: 0
# says: swapped
# never: warning
# writes: step.mp
from training import *

torch.__future__.set_swap_module_params_on_conversion(True)
net.to(torch.bfloat16)
data = torch.zeros(4, 64, device="cuda", dtype=torch.bfloat16)
for _ in range(2):
    loss = net(data).sum()
    first, second = torch.zeros(64, device="cuda"), torch.zeros(32, device="cuda")
    torch.utils.swap_tensors(first, second)
    del second
    loss = loss + first.sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
with torch.device("meta"):
    net = torch.nn.Linear(8, 8)
net.to_empty(device="cuda")
print("swapped", first.shape)
