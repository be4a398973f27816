"""Training with nested tensors of jagged layout: `python jagged.py NAME`, saved as jagged_NAME.mp."""
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.nested._internal.nested_tensor import nested_from_padded

torch.manual_seed(0)
JAGGED = {"layout": torch.jagged, "device": "cuda"}


class Block(nn.Module):
    def __init__(self, width=128, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        x = x + self.drop(self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class Language(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(500, 128), nn.Linear(128, 500)
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, ids):
        return self.head(self.blocks(self.table(ids)))


def transformer(dtype=torch.bfloat16):
    """Attention by the flash kernels, in 32 bits by the memory-efficient ones."""
    model = Language().cuda().to(dtype)

    def loss():
        ids = torch.nested.nested_tensor([torch.randint(0, 500, (n,)) for n in (37, 12, 64, 50)], **JAGGED)
        return F.cross_entropy(model(ids).values(), ids.values())

    return model, loss


def transformer_f32():
    return transformer(torch.float32)


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.up, self.down = nn.Embedding(1000, 96), nn.Linear(96, 256), nn.Linear(256, 10)

    def forward(self, ids, lengths):
        x = torch.relu(self.up(self.table(ids)))
        return self.down(x.to_padded_tensor(0.0).sum(dim=1) / lengths)


def pooling():
    """A mean over the sequences; the batch is made on the host."""
    model = Pooled().cuda()
    lengths = torch.tensor([17, 5, 40, 23])

    def loss():
        ids = torch.nested.nested_tensor([torch.randint(0, 1000, (n,)) for n in lengths.tolist()], layout=torch.jagged).cuda()
        return F.cross_entropy(model(ids, lengths.cuda().unsqueeze(1)), torch.randint(0, 10, (4,)).cuda())

    return model, loss


class Gates(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.gate, self.out = nn.Linear(64, 128), nn.LayerNorm(128), nn.Linear(128, 128), nn.Linear(128, 8)
        self.scale = nn.Parameter(torch.ones(128))

    def forward(self, x):
        h = self.norm(self.a(x))
        h = h * torch.softmax(self.gate(h), dim=-1) * self.scale
        return self.out(F.dropout(F.silu(h), 0.2))


def norms():
    """Normalisation, softmax and dropout under autocast."""
    model = Gates().cuda()

    def loss():
        x = torch.nested.as_nested_tensor([torch.randn(n, 64, device="cuda") for n in (30, 7, 55)], layout=torch.jagged)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return model(x).values().float().square().mean()

    return model, loss


def joined():
    """Features joined and taken apart again, and sequences cut out of the values."""
    model = nn.ModuleDict({"a": nn.Linear(32, 64), "b": nn.Linear(32, 64), "out": nn.Linear(128, 4)}).cuda()
    lengths = [9, 20, 4]

    def loss():
        x = torch.nested.nested_tensor([torch.randn(n, 32) for n in lengths], **JAGGED)
        both = torch.cat([torch.tanh(model["a"](x)), torch.sigmoid(model["b"](x))], dim=-1)
        first = model["out"](both).chunk(2, dim=-1)[0]
        return sum(part.sum() for part in first.values().split(lengths))

    return model, loss


def padded():
    """To padded tensors for a convolution, and back."""
    model = nn.ModuleDict({"a": nn.Linear(32, 64), "conv": nn.Conv1d(64, 64, 3, padding=1), "out": nn.Linear(64, 4)}).cuda()

    def loss():
        x = torch.nested.nested_tensor([torch.randn(n, 32) for n in (9, 20, 4)], **JAGGED)
        h = model["a"](x)
        mixed = model["conv"](torch.nested.to_padded_tensor(h, 0.0).transpose(1, 2)).transpose(1, 2)
        back = nested_from_padded(mixed, x.offsets(), min_seqlen=4, max_seqlen=20, sum_S=33)
        return model["out"](torch.relu(back + h)).values().square().mean()

    return model, loss


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.items, self.users, self.weigh = nn.Embedding(5000, 64), nn.Embedding(100, 64), nn.Linear(64, 1)
        self.top = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, history, users, lengths):
        items = self.items(history)
        weighed = items * torch.sigmoid(self.weigh(items))
        pooled = weighed.to_padded_tensor(0.0, (8, 30, 64)).sum(dim=1) / lengths
        return self.top(torch.cat([pooled, self.users(users)], dim=-1))


def recommender():
    """Histories of different length, of which the offsets are given."""
    model = Recommender().cuda()
    lengths = torch.tensor([3, 10, 30, 1, 5, 8, 21, 2])
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])

    def loss():
        items = torch.randint(0, 5000, (80,)).cuda()
        history = torch.nested.nested_tensor_from_jagged(items, offsets.cuda(), min_seqlen=1, max_seqlen=30)
        score = model(history, torch.randint(0, 100, (8,)).cuda(), lengths.cuda().float().unsqueeze(1))
        return F.binary_cross_entropy_with_logits(score, torch.ones(8, 1, device="cuda"))

    return model, loss


class Cross(nn.Module):
    def __init__(self, width=64, heads=2):
        super().__init__()
        self.heads, self.q, self.kv, self.out = heads, nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)

    def forward(self, x, memory):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (self.q(x), *self.kv(memory).chunk(2, dim=-1)))
        return self.out(F.scaled_dot_product_attention(q, k, v, dropout_p=0.1).transpose(1, 2).flatten(-2))


def cross():
    """Queries of other lengths than keys, under autocast, with dropout in the attention."""
    model = Cross().cuda()

    def loss():
        x, memory = (torch.nested.nested_tensor([torch.randn(n, 64) for n in lengths], **JAGGED) for lengths in ((9, 20, 4), (30, 5, 44)))
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return model(x, memory).values().float().square().mean()

    return model, loss


def unbound():
    """Sequences one by one."""
    model = nn.Linear(32, 64).cuda()

    def loss():
        x = torch.nested.nested_tensor([torch.randn(n, 32) for n in (9, 20, 4)], **JAGGED)
        return sum(part.square().mean() for part in model(x).unbind())

    return model, loss


def offsets():
    """Attention where only the offsets are given: the longest sequence and the shortest one are read from the device."""
    model = Cross().cuda().to(torch.bfloat16)
    begins = torch.tensor([0, 9, 29, 33])

    def loss():
        x = torch.nested.nested_tensor_from_jagged(torch.randn(33, 64, dtype=torch.bfloat16).cuda(), begins.cuda())
        return model(x, x).values().float().square().mean()

    return model, loss


model, loss_of_batch = globals()[sys.argv[1]]()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    loss = loss_of_batch()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
