import torch

net = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as profile:
        loss = net(torch.zeros(8, 64, device="cuda")).sum()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(any("addmm" in event.key for event in profile.key_averages()))
    del loss, profile
print("the program has ended")
