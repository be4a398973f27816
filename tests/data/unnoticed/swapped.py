import torch

torch.__future__.set_swap_module_params_on_conversion(True)
net = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Linear(32, 8)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
net.to(torch.bfloat16)
for _ in range(2):
    out = net(torch.zeros(4, 32, device="cuda", dtype=torch.bfloat16))
    first, second = torch.zeros(100, device="cuda"), torch.zeros(300, device="cuda")
    torch.utils.swap_tensors(first, second)
    del second
    (out.float().sum() + first.sum()).backward()
    optimizer.step()
    optimizer.zero_grad()
net.to(torch.float64)
print(net(torch.zeros(4, 32, device="cuda", dtype=torch.float64)).dtype)
print("the program has ended")
