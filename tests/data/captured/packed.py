import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
torch.manual_seed(0)
class Tagger(nn.Module):
    def __init__(self, bidirectional=True, layers=2):
        super().__init__()
        self.embed = nn.Embedding(500, 64)
        self.rnn = nn.LSTM(64, 128, num_layers=layers, batch_first=True, bidirectional=bidirectional, dropout=0.1 if layers > 1 else 0.)
        self.head = nn.Linear(128 * (2 if bidirectional else 1), 17)
    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.embed(x), lengths, batch_first=True, enforce_sorted=False)
        out, _ = self.rnn(packed)
        out, _ = pad_packed_sequence(out, batch_first=True, total_length=x.size(1))
        return self.head(out)
model = Tagger().cuda()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(2):
    lengths = torch.tensor([40, 37, 12, 25, 25, 3, 18, 31]) - step
    x = torch.randint(0, 500, (8, 40 - step)).cuda()
    y = torch.randint(0, 17, (8, 40 - step)).cuda()
    loss = nn.functional.cross_entropy(model(x, lengths).flatten(0, 1), y.flatten())
    loss.backward()
    opt.step()
    opt.zero_grad()
