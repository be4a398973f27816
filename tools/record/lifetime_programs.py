"""Small programs, each with a way in which Python keeps tensors alive; the forward gives the loss.

    python tools/record/lifetime_programs.py export FOLDER     writes NAME.pt2 of each; needs PyTorch alone
    python tools/record/lifetime_programs.py record FOLDER     writes NAME.json, what two steps take, by `metaprof run` (METAPROF names the program)

`metaprof check FOLDER/NAME.pt2 --against FOLDER/NAME.json --optimizer sgd` compares.
"""
import inspect
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import torch
from torch import nn
from torch.nn import functional as F

ROWS, WIDTH = 2048, 256


class Base(nn.Module):
    """The layers that a program names."""

    def __init__(self):
        super().__init__()
        text = inspect.getsource(type(self))
        for name in "abcd":
            if re.search(rf"self\.{name}\b", text):
                setattr(self, name, nn.Linear(WIDTH, WIDTH))
        if "self.norm" in text:
            self.norm = nn.LayerNorm(WIDTH)
        if "self.layers" in text:
            self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))


# --- variables, temporaries, arguments

class Chain(Base):
    def forward(self, x):
        return self.d(self.c(self.b(self.a(x).relu()).relu())).sum()


class Named(Base):
    def forward(self, x):
        h = self.a(x)
        r = torch.relu(h)
        s = self.b(r)
        t = torch.tanh(s)
        return self.c(t).sum()


class Rebound(Base):
    def forward(self, x):
        x = self.a(x)
        x = x * 2
        x = self.b(x)
        x = x.exp()
        x = self.c(x)
        return x.mean()


class Residual(Base):
    def forward(self, x):
        r = x
        h = self.a(x)
        h = h.relu()
        h = self.b(h)
        h = h + r
        r = h
        h = self.norm(h)
        h = self.c(h) + r
        return h.sum()


class OtherName(Base):
    def forward(self, x):
        h = self.a(x) * 2
        kept = h
        h = self.b(h).sin()
        h = self.c(h)
        return (h + kept).sum()


class Augmented(Base):
    def forward(self, x):
        h = self.a(x)
        h += 1
        g = self.b(h)
        g *= 0.5
        g = g + h
        return g.sum()


class Tuple(Base):
    def forward(self, x):
        p, q = self.a(x), self.b(x)
        u, v = p * q, p + q
        return (self.c(u) + v).sum()


class Swapped(Base):
    def forward(self, x):
        p = self.a(x) * 3
        q = self.b(x) * 4
        p, q = q, p
        p = self.c(p)
        q = self.d(q)
        return (p * q).sum()


class Starred(Base):
    def forward(self, x):
        first, *rest = torch.chunk(self.a(x), 4, 1)
        y = first * 2
        for r in rest:
            y = y + r.exp()
        return y.sum()


class Unused(Base):
    def forward(self, x):
        values, _ = torch.max(self.a(x).view(ROWS, 16, -1), 1)
        h = torch.cat([values] * 16, 1)
        return self.b(h).sum()


class Split(Base):
    def forward(self, x):
        p, q = self.a(x).chunk(2, -1)
        h = torch.cat([p.sigmoid() * q, q], -1)
        return self.b(h).sum()


class OneExpression(Base):
    def forward(self, x):
        return (torch.tanh(self.a(x)) * torch.sigmoid(self.b(x)) + self.c(x)).sum()


class TwoInALine(Base):
    def forward(self, x):
        h = self.a(x); g = h * 2; k = self.b(g)
        return k.sum()


class Walrus(Base):
    def forward(self, x):
        y = self.b(h := self.a(x).exp())
        y = y.relu()
        return self.c(y + h).sum()


class WalrusInACondition(Base):
    def forward(self, x):
        if (h := self.a(x)).shape[0] > 1:
            g = h * 2
        g = self.b(g)
        return self.c(g).sum()


class Deleted(Base):
    def forward(self, x):
        h = self.a(x) * 2
        g = self.b(h)
        del h
        g = g.exp()
        return self.c(g).sum()


class DeletedEarly(Base):
    def forward(self, x):
        h = self.a(x)
        s = h.softmax(-1) * 2
        t = s * 3
        del s, h
        t = self.b(t).sin()
        return self.c(t).sum()


class SetToNone(Base):
    def forward(self, x):
        h = self.a(x) * 2
        g = self.b(h)
        h = None
        g = g.exp()
        return self.c(g).sum()


# --- containers

class Appended(Base):
    def forward(self, x):
        outs = []
        for layer in self.layers:
            x = layer(x) * 2
            outs.append(x)
        return self.a(torch.cat(outs, 0)).sum()


class ListAdded(Base):
    def forward(self, x):
        outs = []
        for layer in self.layers:
            outs += [layer(x) * 2]
        h = outs[0] + outs[1]
        h = self.a(h) + outs[2]
        return h.sum()


class ListIndexed(Base):
    def forward(self, x):
        feats = [x * 2, x * 3, x * 4]
        feats[0] = self.a(feats[0])
        feats[1] = self.b(feats[1] + feats[0])
        feats[2] = self.c(feats[2] + feats[1])
        return feats[2].sum()


class Dictionary(Base):
    def forward(self, x):
        found = {}
        found["low"] = self.a(x) * 2
        found["high"] = self.b(found["low"]) * 2
        h = self.c(found["high"]).exp()
        return (h + found["low"]).sum()


class DictionaryLiteral(Base):
    def forward(self, x):
        found = {"p": self.a(x) * 2, "q": self.b(x) * 2}
        h = self.c(found["p"]).exp()
        h = h * 2
        return (h + found["q"]).sum()


class Comprehension(Base):
    def forward(self, x):
        outs = [layer(x) * 2 for layer in self.layers]
        h = sum(outs)
        h = self.a(h)
        return h.sum()


class Popped(Base):
    def forward(self, x):
        stack = [self.a(x) * 2, self.b(x) * 3]
        h = stack.pop()
        h = self.c(h).exp()
        h = h + stack.pop()
        return self.d(h).sum()


class Zipped(Base):
    def forward(self, x):
        scales = (1.0, 2.0, 3.0)
        for layer, scale in zip(self.layers, scales):
            h = layer(x)
            x = h * scale
        return x.sum()


class Generator(Base):
    def forward(self, x):
        h = sum(layer(x).tanh() for layer in self.layers)
        h = self.a(h)
        return h.sum()


class Reduced(Base):
    def forward(self, x):
        import functools
        h = functools.reduce(lambda y, layer: layer(y).sin(), self.layers, x)
        return self.a(h).sum()


# --- control flow

class Looped(Base):
    def forward(self, x):
        for layer in self.layers:
            h = layer(x)
            x = h.relu() + x
        return x.sum()


class LoopVariableLives(Base):
    def forward(self, x):
        for layer in self.layers:
            h = layer(x).exp() * 2
        g = self.a(h)
        return g.sum()


class While(Base):
    def forward(self, x):
        n = 3
        while n > 0:
            h = self.a(x).sin()
            x = h * n
            n -= 1
        return x.sum()


class Branch(Base):
    def forward(self, x):
        h = self.a(x)
        if self.training:
            h = h * 2
        else:
            h = h * 3
        h = self.b(h)
        return h.sum()


class Ternary(Base):
    def forward(self, x):
        h = self.a(x)
        g = h.exp() if self.training else h
        g = self.b(g)
        return g.sum()


class EarlyReturn(Base):
    def forward(self, x):
        h = self.a(x).exp() * 2
        if self.training:
            return self.b(h).sum()
        return h.sum()


class TryFinally(Base):
    def forward(self, x):
        try:
            h = self.a(x).exp() * 2
            h = self.b(h)
        finally:
            g = x * 2
        return (h * g).sum()


class Exceptions(Base):
    def forward(self, x):
        h = self.a(x) * 2
        try:
            h = self.b(h).exp()
            raise ValueError
        except ValueError:
            h = self.c(h)
        return h.sum()


class WithBlock(Base):
    def forward(self, x):
        with torch.enable_grad():
            h = self.a(x) * 2
            g = h.exp()
        g = self.b(g)
        return g.sum()


# --- modules

class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        h = self.one(x)
        h = h.relu()
        return self.two(h)


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Inner(), Inner()

    def forward(self, x):
        h = self.first(x)
        h = h + self.second(h * 2)
        return h.sum()


class Sequential(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.Sigmoid(), nn.Linear(WIDTH, 8))

    def forward(self, x):
        return self.body(x).sum()


class TwoResults(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.last = Gate(), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        h, g = self.gate(x)
        h = self.last(h)
        return (h * g).sum()


class Gate(Base):
    def forward(self, x):
        g = self.a(x).sigmoid()
        h = self.b(x) * g
        return h, g


class FirstOfTwo(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.last = Gate(), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        h = self.gate(x)[0]
        h = self.last(h).exp()
        return h.sum()


class KeptModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.keeps, self.last = Keeps(), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        h = self.keeps(x)
        h = self.last(h)
        return h.sum()


# --- attributes

class Keeps(Base):
    def forward(self, x):
        h = self.a(x)
        self.hidden = h * 2
        return self.b(h)


class Attribute(Base):
    def forward(self, x):
        self.hidden = self.a(x) * 2
        h = self.b(self.hidden)
        return h.sum()


class AttributeTwice(Base):
    def forward(self, x):
        self.hidden = self.a(x).exp() * 2
        h = self.b(self.hidden)
        self.hidden = h * 3
        return self.c(h).sum()


class AttributeDetached(Base):
    def forward(self, x):
        h = self.a(x)
        self.seen = h.detach() * 2
        return (self.b(h) + self.seen).sum()


# --- without gradients

class NoGrad(Base):
    def forward(self, x):
        with torch.no_grad():
            t = self.a(x)
            s = t.softmax(-1)
        h = self.b(x)
        return (h * s).sum()


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.teacher, self.student = Inner(), Inner()

    def forward(self, x):
        with torch.no_grad():
            raw = self.teacher(x)
            target = raw.softmax(-1)
        h = self.student(x)
        return F.mse_loss(h, target)


class NoGradTwice(Base):
    def forward(self, x):
        with torch.no_grad():
            m = self.a(x) * 2
            m = m.exp()
        h = self.b(x)
        with torch.no_grad():
            n = h * 3
            m = n + m
        return (self.c(h) * m).sum()


class NoGradRebinds(Base):
    def forward(self, x):
        h = self.a(x).exp()
        with torch.no_grad():
            t = h * 2
            t = t + 1
            u = t.sin()
        t = self.b(h)
        return (t * u).sum()


class NoGradMethod(Base):
    @torch.no_grad()
    def target(self, x):
        t = self.a(x) * 2
        return t.softmax(-1)

    def forward(self, x):
        t = self.target(x)
        return (self.b(x) * t).sum()


class Metric(Base):
    def forward(self, x):
        h = self.a(x)
        loss = self.b(h).pow(2).mean()
        with torch.no_grad():
            error = h * 2
            scale = error.abs().mean()
        return loss * scale


# --- functions and methods that leave no frame in an export

def activate(x):
    return torch.tanh(x) * torch.sigmoid(x)


def attend(q, k, v):
    scores = q @ k.transpose(-1, -2)
    share = scores.softmax(-1)
    return share @ v


def attend_scaled(q, k, v):
    q = q * 0.1
    scores = q @ k.transpose(-1, -2)
    share = scores.softmax(-1)
    return share @ v


def mix(x, w1, w2):
    a = x @ w1
    b = x @ w2
    c = x @ w1
    return a + b + c


def locals_of(x):
    p = x * 2
    q = p.exp()
    r = q + p
    return r.sin()


class Function(Base):
    def forward(self, x):
        return activate(self.a(x)).sum()


class Attention(Base):
    def forward(self, x):
        q, k, v = (f(x).view(8, -1, WIDTH) for f in (self.a, self.b, self.c))
        h = attend(q, k, v)
        return self.d(h).sum()


class AttentionScaled(Base):
    def forward(self, x):
        q, k, v = self.a(x).view(8, -1, WIDTH), self.b(x).view(8, -1, WIDTH), self.c(x).view(8, -1, WIDTH)
        h = attend_scaled(q, k, v)
        return self.d(h).sum()


class Products(Base):
    def forward(self, x):
        return mix(x, self.a.weight, self.b.weight).sum()


class Locals(Base):
    def forward(self, x):
        h = self.a(x)
        h = locals_of(h)
        return self.b(h).sum()


class Method(Base):
    def half(self, x):
        h = self.a(x)
        h = h * 2
        return self.b(h)

    def forward(self, x):
        h = self.half(x)
        return h.sum()


class Methods(Base):
    def up(self, x):
        return self.a(x).relu()

    def down(self, x):
        return self.b(x)

    def forward(self, x):
        h = x + self.down(self.up(x))
        h = h + self.down(self.up(h))
        return h.sum()


class Closure(Base):
    def forward(self, x):
        h = self.a(x) * 2

        def add(y):
            return y + h
        g = add(self.b(x).exp())
        g = add(self.c(g))
        return g.sum()


class Lambda(Base):
    def forward(self, x):
        scale = lambda y: y * 2  # noqa: E731
        h = scale(self.a(x)).exp()
        h = scale(self.b(h))
        return h.sum()


class Yields(Base):
    def parts(self, x):
        for layer in self.layers:
            x = layer(x) * 2
            yield x

    def forward(self, x):
        total = 0
        for part in self.parts(x):
            total = total + part.sin()
        return total.sum()


# --- writes in place, views

class InPlace(Base):
    def forward(self, x):
        h = self.a(x).relu_()
        h = self.b(h)
        h.add_(1)
        return self.c(h).sum()


class SliceWritten(Base):
    def forward(self, x):
        h = self.a(x) * 2
        h[:, :16] = 0
        h = self.b(h)
        return h.sum()


class ViewKept(Base):
    def forward(self, x):
        part = (self.a(x) * 2)[:4]
        h = self.b(x).exp()
        h = self.c(h)
        return h.sum() + part.sum()


PROGRAMS = {name: kind for name, kind in globals().items()
            if isinstance(kind, type) and issubclass(kind, nn.Module) and name not in ("Base", "Inner", "Gate", "Keeps")}


def made(name):
    return PROGRAMS[name](), [torch.rand(ROWS, WIDTH)]


def export(name, folder):
    with torch.device("meta"):
        model, inputs = made(name)
    file = folder / f"{name}.pt2"
    torch.export.save(torch.export.export(model, tuple(inputs), strict=False), file)
    pack(file)


def pack(file):
    """Makes the archive small, and its source lines name files without where they lie on this machine."""
    with zipfile.ZipFile(file) as archive:
        records = [(info.filename, archive.read(info)) for info in archive.infolist()]
    folders = [f"{pathlib.Path(path).resolve().parent}/".encode() for path in (__file__, torch.__path__[0])]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in records:
            for folder in folders:
                data = data.replace(folder, b"")
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED, 9)


def train(name):
    train_steps(*made(name))


def train_steps(module, inputs):
    """Two steps with SGD."""
    module.to("cuda")
    inputs = [x.to("cuda") for x in inputs]
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)
    for _ in range(2):
        module(*inputs).backward()
        optimizer.step()
        optimizer.zero_grad()


def record(name, folder):
    """NAME.json and NAME.log.gz: what the steps take, by `metaprof run` (METAPROF names the program)."""
    metaprof = os.environ.get("METAPROF", "metaprof")
    real = ["--real"] if torch.cuda.is_available() else ["--device", "h200"]
    subprocess.run([metaprof, "run", *real, "--json", folder / f"{name}.json", "--events", "--", sys.executable, sys.argv[0], "train", folder, name],
                   check=True, stdout=subprocess.DEVNULL)


def main(programs, export, train):
    what, folder, *names = sys.argv[1:]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if what == "train":
        return train(*names)
    failed = []
    for name in names or programs:  # a process each: nothing of one program is there when the next one runs
        child = os.fork()
        if child == 0:
            try:
                {"export": export, "record": record}[what](name, folder)
            except Exception as error:  # noqa: BLE001
                print(f"{name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
                os._exit(1)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            failed.append(name)
    print(f"{what}: {len(names or programs) - len(failed)} programs, failed: {' '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(PROGRAMS, export, train))
