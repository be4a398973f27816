import bitsandbytes as bnb
import torch

net = torch.nn.Sequential(torch.nn.Embedding(32000, 1024), torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)).cuda()
optimizer = bnb.optim.Adam8bit(net.parameters(), lr=1e-4)
for step in range(3):
    net(torch.zeros(8, 128, dtype=torch.long, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("state", sum(t.numel() * t.element_size() for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor)))
