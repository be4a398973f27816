import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pack_sequence
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(16, 32)
        self.rnn = nn.RNN(32, 8, nonlinearity="relu")
        self.head = nn.Linear(8, 3)
    def forward(self, parts):
        packed = pack_sequence(parts)
        out, _ = self.gru(packed)
        out, h = self.rnn(out)
        seq, lengths = pad_packed_sequence(out)
        return self.head(seq).mean() + self.head(h).mean()
model = Net().cuda()
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(2):
    parts = [torch.randn(n, 16).cuda() for n in (9, 9, 7, 2)]
    loss = model(parts)
    loss.backward()
    opt.step()
    opt.zero_grad()
