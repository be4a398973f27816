import torch


def fold(kind):
    torch.cuda.reset_peak_memory_stats()
    net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 8)).cuda()
    optimizer = kind(net.parameters(), lr=0.1)
    for _ in range(2):
        loss = net(torch.zeros(16, 64, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


for kind in (torch.optim.SGD, torch.optim.AdamW, torch.optim.AdamW, torch.optim.Adagrad):
    fold(kind)
    print(torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())
print("the program has ended")
