"""Models whose captures are recorded beside those of the zoo (models/NAME.pt2): what the framework skips, what writes to
its inputs, what is compiled in pieces. The recorder registers them with ZOO_EXTRA=models and this folder in PYTHONPATH."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from zoo import ClassifierLoss, RegressionLoss, register


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(64, 128)
        self.b = nn.Linear(128, 10)


class HostNumber(Layers):
    """Scales by a number that is a tensor on the host."""

    def forward(self, x):
        x = F.relu(self.a(x))
        return self.b(x * torch.tensor(0.5))


class HostIndex(Layers):
    """Takes rows by indices made on the host."""

    def forward(self, x):
        x = F.relu(self.a(x))
        return self.b(x[torch.arange(x.shape[0])])


class WritesInput(Layers):
    """Scales its input in place."""

    def forward(self, x):
        x.mul_(0.5)
        return self.b(F.relu(self.a(x)))


class WritesBuffer(Layers):
    """Keeps a running mean of its activations, and counts its calls."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(128))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        x = self.a(x)
        with torch.no_grad():
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            self.calls += 1
        return self.b(F.relu(x - self.mean))


class HalfEager(nn.Module):
    """An LSTM between an embedding and a head, each a statement of its own."""

    def __init__(self, vocab=1000, embed=64, hidden=128, classes=10):
        super().__init__()
        self.embed = nn.Embedding(vocab, embed)
        self.lstm = nn.LSTM(embed, hidden, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, ids):
        x = self.embed(ids)
        y, _ = self.lstm(x)
        return self.head(y[:, -1])


class RNNTagger(nn.Module):
    def __init__(self, vocab=1000, embed=64, hidden=96, classes=12):
        super().__init__()
        self.embed = nn.Embedding(vocab, embed)
        self.rnn = nn.LSTM(embed, hidden, 2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0]).transpose(1, 2)


class Upsampler(nn.Module):
    """Nearest and bilinear, by a factor and to a size."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 32, 3, 2, 1)
        self.up = nn.Upsample(scale_factor=2)
        self.b = nn.Conv2d(32, 16, 3, padding=1)
        self.c = nn.Conv2d(16, 3, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.up(F.relu(self.a(x))))
        x = self.b(x)
        return self.c(F.interpolate(x, size=(48, 48), mode="bilinear", align_corners=True))


class Discriminator(nn.Module):
    def __init__(self, w=32):
        super().__init__()
        layers = [nn.Conv2d(3, w, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
        for a, b in ((w, 2 * w), (2 * w, 4 * w), (4 * w, 8 * w)):
            layers += [nn.Conv2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.2, inplace=True)]
        self.net = nn.Sequential(*layers, nn.Conv2d(8 * w, 1, 4, 1, 0, bias=False))

    def forward(self, x):
        return self.net(x).view(-1)


class BinaryLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, y):
        return F.binary_cross_entropy_with_logits(self.model(x), y)


class VAE(nn.Module):
    """Draws random numbers, and sums two losses."""

    def __init__(self):
        super().__init__()
        self.e = nn.Linear(784, 256)
        self.mu = nn.Linear(256, 32)
        self.lv = nn.Linear(256, 32)
        self.d = nn.Linear(32, 256)
        self.o = nn.Linear(256, 784)

    def forward(self, x):
        h = F.relu(self.e(x))
        mu, lv = self.mu(h), self.lv(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * lv)
        y = torch.sigmoid(self.o(F.relu(self.d(z))))
        return F.mse_loss(y, x, reduction="sum") - 0.5 * torch.sum(1 + lv - mu.pow(2) - lv.exp())


def features(c):
    return c.real(c.batch, 64), c.ints(10, c.batch)


for name, model in (("host_number", HostNumber), ("host_index", HostIndex), ("writes_input", WritesInput),
                    ("writes_buffer", WritesBuffer)):
    register(name, lambda model=model: ClassifierLoss(model(), 10), features, "mlp", 32)
register("half_eager", lambda: ClassifierLoss(HalfEager(), 10),
         lambda c: (c.ints(1000, c.batch, c.seq), c.ints(10, c.batch)), "rnn", 16, seq=20)
register("rnn_tagger", lambda: ClassifierLoss(RNNTagger(), 12),
         lambda c: (c.ints(1000, c.batch, c.seq), c.ints(12, c.batch, c.seq)), "rnn", 16, seq=20)
register("upsampler", lambda: RegressionLoss(Upsampler()),
         lambda c: (c.real(c.batch, 3, c.image, c.image), c.real(c.batch, 3, 48, 48)), "cnn", 8, image=64)
register("discriminator", lambda: BinaryLoss(Discriminator()),
         lambda c: (c.real(c.batch, 3, 64, 64), c.real(c.batch)), "cnn", 16, image=64)
register("vae", VAE, lambda c: (c.real(c.batch, 784),), "mlp", 64)
