import torch

net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)).cuda()
for width in (64, 32, 64):
    try:
        out = net(torch.zeros(8, width, device="cuda"))
        out.sum().backward()
        raise ValueError
    except (RuntimeError, ValueError) as error:
        print(type(error).__name__)
    net.zero_grad()
try:
    torch.empty(1 << 45, device="cuda")
except torch.OutOfMemoryError:
    print("no memory")
pool = [torch.zeros(1 << 20, device="cuda") for _ in range(4)]
del pool[1::2]
big = torch.zeros(1 << 22, device="cuda")
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    other = big * 2
big.record_stream(stream)
del big
torch.cuda.empty_cache()
print("the program has ended")
