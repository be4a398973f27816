"""Small training programs for the graph executor: tools/record/record_scripted_models.py scripts them and runs them."""
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(256, 768)
        self.out = nn.Linear(256, 256)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, 2)
        a = torch.softmax(torch.matmul(q, k.transpose(1, 2)) / 16.0, 2)
        return torch.tanh(self.out(torch.matmul(a, v))).sum()


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 32, 3, padding=1)
        self.b = nn.BatchNorm2d(32)
        self.d = nn.Conv2d(32, 32, 3, padding=1)
        self.e = nn.BatchNorm2d(32)
        self.f = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.b(self.c(x)))
        y = F.relu(self.e(self.d(y)) + y)
        y = F.max_pool2d(y, 2)
        return self.f(y.mean([2, 3])).sum()


class Lm(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(1000, 256)
        self.n = nn.LayerNorm(256)
        self.l = nn.Linear(256, 1024)
        self.m = nn.Linear(1024, 256)
        self.h = nn.Linear(256, 1000)
        self.register_buffer("t", torch.zeros(512, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        y = self.e(x)
        y = y + self.m(F.gelu(self.l(self.n(y))))
        z = torch.log_softmax(self.h(y), 1)
        return F.nll_loss(z, self.t)


class Rnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Linear(256, 256)
        self.u = nn.Linear(256, 256)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros_like(x)
        for i in range(5):
            h = torch.tanh(self.w(x) + self.u(h))
        return h.mean()


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(256, 768))
        self.u = nn.Parameter(torch.randn(256, 768))
        self.b = nn.Parameter(torch.randn(768))

    def forward(self, x: Tensor) -> Tensor:
        h = x
        for i in range(4):
            a = torch.mm(x, self.w) + self.b
            c = torch.mm(h, self.u)
            ar, az, an = a.chunk(3, 1)
            cr, cz, cn = c.chunk(3, 1)
            r = torch.sigmoid(ar + cr)
            z = torch.sigmoid(az + cz)
            n = torch.tanh(an + r * cn)
            h = (1.0 - z) * n + z * h
        return h.sum()


class Highway(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(512, 512)
        self.b = nn.Linear(512, 512)

    def forward(self, x: Tensor) -> Tensor:
        g = torch.sigmoid(self.a(x))
        h = F.leaky_relu(self.b(x), 0.1)
        y = torch.clamp(g * h + (1.0 - g) * x, -2.0, 2.0)
        z = torch.where(y > 0.0, y * g, torch.exp(y))
        return (F.silu(z) * F.softplus(h)).mean()


class Sides(nn.Module):
    def __init__(self):
        super().__init__()
        for i in range(9):
            setattr(self, f"w{i}", nn.Parameter(torch.randn(256, 256)))

    def forward(self, x: Tensor) -> Tensor:
        a = torch.mm(x, self.w0)
        b = torch.mm(x, self.w1)
        c = torch.mm(x, self.w2)
        d = torch.mm(x, self.w3)
        e = torch.mm(x, self.w4)
        f = torch.mm(x, self.w5)
        g = torch.mm(x, self.w6)
        h = torch.mm(x, self.w7)
        i = torch.mm(x, self.w8)
        y = torch.sigmoid(a) * torch.tanh(b) * torch.sigmoid(c) * torch.tanh(d)
        return (y + torch.sigmoid(e) * torch.tanh(f) * torch.relu(g) * h * i).sum()


class Rms(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(512, 512, bias=False)
        self.w = nn.Parameter(torch.randn(512))
        self.m = nn.Linear(512, 512, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.l(x)
        y = y * torch.rsqrt((y * y).mean([1], keepdim=True) + 1e-6) * self.w
        return (torch.sigmoid(self.m(y)) * y).sum()


class Stats(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(512, 512)

    def forward(self, x: Tensor) -> Tensor:
        y = self.l(x)
        v = y.var([1], unbiased=False, keepdim=True)
        m = y.mean([1], keepdim=True)
        z = (y - m) / torch.sqrt(v + 1e-5)
        return (torch.logsumexp(z, [1]) + z.std(1)).sum()


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(512, 256)
        self.b = nn.Linear(512, 256)
        self.c = nn.Linear(512, 512)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.cat([torch.sigmoid(self.a(x)), torch.tanh(self.b(x))], 1)
        z = torch.relu(self.c(y)) + y
        p, q = z.split([128, 384], 1)
        return torch.exp(p).sum() + torch.sin(q).sum()


class Drop(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(512, 512)
        self.d = nn.Dropout(0.2)
        self.b = nn.Linear(512, 512)

    def forward(self, x: Tensor) -> Tensor:
        y = self.d(torch.relu(self.a(x)))
        return (self.b(y) * torch.erf(y)).pow(3.0).sum()


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(256, 256)
        self.k = nn.Linear(256, 256)
        self.v = nn.Linear(256, 256)
        self.n = nn.LayerNorm(256)

    def forward(self, x: Tensor) -> Tensor:
        y = self.n(x)
        q = self.q(y).view(8, 64, 4, 64).transpose(1, 2)
        k = self.k(y).view(8, 64, 4, 64).transpose(1, 2)
        v = self.v(y).view(8, 64, 4, 64).transpose(1, 2)
        s = torch.matmul(q * 0.125, k.transpose(2, 3))
        o = torch.matmul(torch.softmax(s, 3), v).transpose(1, 2).reshape(8, 64, 256)
        return (torch.tanh(o) + x).sum()


class Cell(nn.Module):
    """h and c as two parameters of the state; nn.LSTMCell written out"""

    def __init__(self):
        super().__init__()
        self.i = nn.Linear(128, 1024)
        self.h = nn.Linear(256, 1024)
        self.s = nn.Parameter(torch.randn(64, 256))
        self.t = nn.Parameter(torch.randn(64, 256))

    def forward(self, x: Tensor) -> Tensor:
        h = self.s
        c = self.t
        for k in range(3):
            g = self.i(x) + self.h(h)
            a, b, d, e = g.chunk(4, 1)
            c = torch.sigmoid(b) * c + torch.sigmoid(a) * torch.tanh(d)
            h = torch.sigmoid(e) * torch.tanh(c)
        return (h * c).sum()


class Poly(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(256, 1))
        self.b = nn.Parameter(torch.randn(1, 512))
        self.c = nn.Parameter(torch.randn(256, 512))

    def forward(self, x: Tensor) -> Tensor:
        y = x * self.a + self.b
        z = torch.atan(y) * torch.cosh(self.c * 0.1) + torch.log1p(torch.abs(y)) / (1.0 + self.c * self.c)
        return (z * torch.max(y, self.c)).sum()


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(512, 512)
        self.m = nn.Linear(512, 512)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.m(torch.relu(self.l(x)))).sum()


class Autoencoder(nn.Module):
    """autoencoder with prelu-like gate and smooth loss"""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(512, 128)
        self.b = nn.Linear(128, 512)
        self.g = nn.Parameter(torch.ones(128))

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.a(x)) * self.g
        y = self.b(h) - x
        return torch.sqrt(y * y + 1e-3).mean() + torch.abs(h).sum() * 0.01


class Experts(nn.Module):
    """mixture of three experts, dense"""

    def __init__(self):
        super().__init__()
        self.r = nn.Linear(256, 3)
        self.e0 = nn.Linear(256, 256)
        self.e1 = nn.Linear(256, 256)
        self.e2 = nn.Linear(256, 256)

    def forward(self, x: Tensor) -> Tensor:
        p = torch.softmax(self.r(x), 1)
        a, b, c = p.chunk(3, 1)
        y = a * torch.relu(self.e0(x)) + b * torch.relu(self.e1(x)) + c * torch.relu(self.e2(x))
        return (y * torch.sigmoid(y)).sum()


class TwoWays(nn.Module):
    """bidirectional tanh cells over time slices"""

    def __init__(self):
        super().__init__()
        self.f = nn.Linear(128, 128)
        self.g = nn.Linear(128, 128)
        self.o = nn.Linear(256, 10)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros_like(x[0])
        k = torch.zeros_like(x[0])
        for t in range(4):
            h = torch.tanh(self.f(h + x[t]))
            k = torch.tanh(self.g(k + x[3 - t]))
        return torch.log_softmax(self.o(torch.cat([h, k], 1)), 1).mean()


class Pooling(nn.Module):
    """conv with group norm-like statistics, hardswish, avg pool"""

    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(3, 16, 3, padding=1)
        self.d = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.w = nn.Parameter(torch.ones(32, 1, 1))
        self.l = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        y = F.hardswish(self.c(x))
        y = self.d(y)
        m = y.mean([2, 3], keepdim=True)
        y = (y - m) * self.w
        y = F.avg_pool2d(F.relu6(y), 2)
        return self.l(y.mean([2, 3])).pow(2.0).sum()


class Waves(nn.Module):
    """physics-like: sin features, two heads sharing a trunk"""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(512, 512)
        self.b = nn.Linear(512, 512)
        self.c = nn.Linear(512, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.sin(self.a(x) * 3.0)
        z = torch.cos(self.b(y)) + y
        u = self.c(z)
        return (u * u).mean() + torch.log(1.0 + torch.exp(z)).mean()


class Residual(nn.Module):
    """gelu mlp with residuals, dropout and a squared loss against a buffer"""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(512, 1024)
        self.b = nn.Linear(1024, 512)
        self.n = nn.LayerNorm(512)
        self.d = nn.Dropout(0.1)
        self.register_buffer("t", torch.zeros(256, 512))

    def forward(self, x: Tensor) -> Tensor:
        y = x + self.d(self.b(F.gelu(self.a(self.n(x)))))
        return F.mse_loss(y, self.t)


class Filters(nn.Module):
    """elementwise only: a filter bank"""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(512))
        self.b = nn.Parameter(torch.randn(256, 512))
        self.c = nn.Parameter(torch.randn(256, 1))

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for i in range(3):
            y = torch.tanh(y * self.a + self.b) + torch.erf(y * self.c)
        return (y / (1.0 + torch.exp(-y))).sum()


class Sums(nn.Module):
    """addmm chains"""

    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(512, 512))
        self.b = nn.Parameter(torch.randn(512))
        self.c = nn.Parameter(torch.randn(512, 512))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.addmm(self.b, x, self.a)
        z = torch.addmm(self.b, torch.sigmoid(y), self.c)
        w = torch.addmm(y, torch.tanh(z), self.a.t())
        return (w * z).sum()


class LstmGates(nn.Module):
    """An LSTM without a loop in it: products are batched in the backward, gates are chunks."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(512, 2048))
        self.u = nn.Parameter(torch.randn(512, 2048))
        self.b = nn.Parameter(torch.randn(2048))

    def forward(self, x: Tensor) -> Tensor:
        h = x
        c = x
        for i in range(6):
            gates = torch.mm(x, self.w) + torch.mm(h, self.u) + self.b
            a, f, o, g = gates.chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(a) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h.sum()


class Elementwise(nn.Module):
    """Eleven elementwise operators behind a layer: one kernel."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(512, 512)
        self.a = nn.Parameter(torch.randn(512))
        self.b = nn.Parameter(torch.randn(512))

    def forward(self, x: Tensor) -> Tensor:
        y = self.l(x)
        z = torch.tanh(y * self.a + self.b) * torch.sigmoid(y)
        return (torch.exp(torch.sin(torch.cos(z) * z) + z) * y).mean()


class Products(nn.Module):
    """Six products of one left side: two too few to be batched."""

    def __init__(self):
        super().__init__()
        for i in range(6):
            setattr(self, f"w{i}", nn.Parameter(torch.randn(512, 512)))

    def forward(self, x: Tensor) -> Tensor:
        y = torch.mm(x, self.w0) + torch.mm(x, self.w1) + torch.mm(x, self.w2)
        y = y + torch.mm(x, self.w3) + torch.mm(x, self.w4) + torch.mm(x, self.w5)
        return torch.tanh(torch.sigmoid(y) * y).sum()


# Sizes of the input, 256 x 512 for the others.
SIZES = {
    Attention: (8, 64, 256),
    ConvNet: (4, 3, 32, 32),
    Lm: (512,),
    Rnn: (128, 256),
    Gru: (128, 256),
    Sides: (128, 256),
    Heads: (8, 64, 256),
    Cell: (64, 128),
    Experts: (128, 256),
    TwoWays: (4, 64, 128),
    Pooling: (8, 3, 32, 32),
}
MODELS = {
    model.__name__.lower(): model
    for model in nn.Module.__subclasses__()
    if model.__module__ == __name__
}


def example(name: str) -> Tensor:
    sizes = SIZES.get(MODELS[name], (256, 512))
    return torch.zeros(sizes, dtype=torch.int64) if name == "lm" else torch.zeros(sizes)
