"""Small models that use what versions of PyTorch do differently, each with its inputs; the forward gives the loss.

For tools/record/record_version.sh. They need PyTorch alone, so that every version can run and export them.
"""
import torch
from torch import nn
from torch.nn import functional as F


class Loss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        scores = self.model(x)
        return F.cross_entropy(scores.flatten(0, -2), labels.flatten())


class Block(nn.Module):
    """Attention and two linear layers; keys and values may have fewer heads."""

    def __init__(self, width, heads, groups, dropout, norm):
        super().__init__()
        self.heads, self.groups, self.size, self.dropout = heads, groups, width // heads, dropout
        self.before, self.between = norm(width), norm(width)
        self.query = nn.Linear(width, width)
        self.keys = nn.Linear(width, 2 * groups * self.size, bias=False)
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        h = self.before(x)
        q = self.query(h).view(batch, length, self.heads, self.size).transpose(1, 2)
        kv = self.keys(h).view(batch, length, 2, self.groups, self.size).transpose(1, 3)
        k, v = kv[:, :, 0], kv[:, :, 1]
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=True,
                                           enable_gqa=self.groups < self.heads)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.between(x))))


class Language(nn.Module):
    """A language model whose last layer is its table of words."""

    def __init__(self, words, width, heads, groups, dropout, norm):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads, groups, dropout, norm) for _ in range(2))
        self.norm = norm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, :, :])


class Rotated(nn.Module):
    """Angles by position as an outer product, and a list of tensors indexed by a table."""

    def __init__(self, width):
        super().__init__()
        self.first, self.last = nn.Linear(width, width), nn.Linear(width, 10)
        self.register_buffer("speeds", torch.rand(width // 2))

    def forward(self, x):
        positions = torch.arange(x.shape[1], device=x.device, dtype=torch.float32)[None, None, :]
        angles = (self.speeds[None, :, None].float() @ positions).transpose(1, 2)
        h = self.first(x)
        left, right = h[..., : h.shape[-1] // 2], h[..., h.shape[-1] // 2 :]
        h = torch.cat([left * angles.cos() - right * angles.sin(), right * angles.cos() + left * angles.sin()], -1)
        return self.last(h)[:, 0]


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(inplace=True),
                                    nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.GroupNorm(8, 64), nn.SiLU(),
                                    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))

    def forward(self, x):
        return self.layers(x)


class Recurrent(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.cells = nn.LSTM(width, width, 2, batch_first=True, dropout=0.2)
        self.head = nn.Linear(width, words)

    def forward(self, ids):
        return self.head(self.cells(self.words(ids))[0])


class Small(nn.Module):
    """One layer of attention with all that an export writes in several ways, in few nodes."""

    def __init__(self, words, width):
        super().__init__()
        self.words, self.norm = nn.Embedding(words, width), nn.RMSNorm(width)
        self.all, self.out = nn.Linear(width, 2 * width), nn.Linear(width, words, bias=False)

    def forward(self, ids):
        h = self.norm(self.words(ids))
        batch, length, width = h.shape
        q, kv = self.all(h).split(width, -1)
        q = q.view(batch, length, 4, -1).transpose(1, 2)
        kv = kv.view(batch, length, 2, 2, -1).transpose(1, 3)
        y = F.scaled_dot_product_attention(q, kv[:, :, 0], kv[:, :, 1], dropout_p=0.1, is_causal=True, enable_gqa=True)
        return self.out(F.dropout(y.transpose(1, 2).flatten(2), 0.25, self.training)[:, 1:])


def dense():
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))
    return Loss(model), [torch.rand(64, 784), torch.zeros(64, dtype=torch.long)]


def language():
    ids = torch.zeros(4, 256, dtype=torch.long)
    return Loss(Language(2000, 256, 4, 4, 0.1, nn.LayerNorm)), [ids, ids]


def grouped():
    ids = torch.zeros(4, 256, dtype=torch.long)
    return Loss(Language(70000, 256, 4, 2, 0.0, nn.RMSNorm)), [ids, ids]


def rotated():
    return Loss(Rotated(256)), [torch.rand(8, 512, 256), torch.zeros(8, dtype=torch.long)]


def pictures():
    return Loss(Pictures()), [torch.rand(16, 3, 64, 64), torch.zeros(16, dtype=torch.long)]


def recurrent():
    ids = torch.zeros(16, 64, dtype=torch.long)
    return Loss(Recurrent(1000, 256)), [ids, ids]


def small():
    return Loss(Small(50, 32)), [torch.zeros(2, 9, dtype=torch.long), torch.zeros(2, 8, dtype=torch.long)]


# A program, and the options of its runs, as `metaprof check` takes them.
RUNS = {
    "small": [("small", [])],
    "dense": [("dense", [])],
    "language": [("language", []), ("language.amp-bf16", ["--precision", "amp-bf16"])],
    "grouped": [("grouped", []), ("grouped.bf16", ["--precision", "bf16"])],
    "rotated": [("rotated", [])],
    "pictures": [("pictures", []), ("pictures.amp-bf16.sgd", ["--precision", "amp-bf16", "--optimizer", "sgd"])],
    "recurrent": [("recurrent", []), ("recurrent.bf16", ["--precision", "bf16"])],
}
