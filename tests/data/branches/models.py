"""Models with torch.cond, whose condition is an input (tools/record_branches.py)."""
import torch
import torch.nn.functional as F
from torch import nn


class WideOrNarrow(nn.Module):
    """Functions of different widths, each with weights that the other does not use."""

    def __init__(self):
        super().__init__()
        self.head, self.wide, self.back = nn.Linear(256, 256), nn.Linear(256, 1024), nn.Linear(1024, 256)
        self.narrow, self.tail = nn.Linear(256, 256), nn.Linear(256, 16)

    def forward(self, x, flag):
        x = torch.relu(self.head(x))
        x = torch.cond(flag.sum() > 0, lambda x: self.back(F.gelu(self.wide(x))), lambda x: torch.sin(self.narrow(x)), (x,))
        return self.tail(x).square().mean()


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.one, self.two = nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 32, 3, padding=1), nn.Conv2d(32, 32, 1)
        self.norm = nn.GroupNorm(4, 32)

    def forward(self, x, flag):
        x = F.silu(self.norm(self.stem(x)))
        x = torch.cond(flag.sum() > 0, lambda x: F.silu(self.two(F.silu(self.one(x)))), lambda x: x * 2, (x,))
        return x.mean()


class EarlyExit(nn.Module):
    """A cond in each of three layers, with an operand of integers."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(1000, 128)
        self.layers = nn.ModuleList(nn.Linear(128, 128) for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(128) for _ in range(3))
        self.head = nn.Linear(128, 1000)

    def forward(self, ids, flag):
        x = self.embed(ids)
        for layer, norm in zip(self.layers, self.norms):
            def deeper(x, ids, layer=layer, norm=norm):
                return x + F.gelu(layer(norm(x))) * (ids > 0).unsqueeze(-1)

            x = torch.cond(flag.sum() > 0, deeper, lambda x, ids: x * 1.0, (x, ids))
        return F.cross_entropy(self.head(x).flatten(0, 1), ids.flatten())


class InsideEachOther(nn.Module):
    """A cond in a function of another one."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(64, 512), nn.Linear(512, 64), nn.Linear(64, 64)

    def forward(self, x, flag):
        def outer(x, flag):
            return torch.cond(flag.sum() > 1, lambda x: self.b(torch.tanh(self.a(x))), lambda x: torch.exp(x), (x,))

        y = torch.cond(flag.sum() > 0, outer, lambda x, flag: torch.tanh(self.c(x)), (self.c(x), flag))
        return (y * x).sum()


class OfInputs(nn.Module):
    """Operands that need no gradient, before the first layer."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(512, 512)

    def forward(self, x, flag):
        x = torch.cond(flag.sum() > 0, lambda x: torch.exp(x) * 2, lambda x: x + 1, (x,))
        return self.layer(x).square().sum()


MODELS = {"wide_or_narrow": WideOrNarrow, "convolutions": Convolutions, "early_exit": EarlyExit, "inside_each_other": InsideEachOther,
          "of_inputs": OfInputs}
EXAMPLES = {"wide_or_narrow": lambda: torch.zeros(512, 256), "convolutions": lambda: torch.zeros(4, 3, 64, 64),
            "early_exit": lambda: torch.zeros(8, 64, dtype=torch.long), "inside_each_other": lambda: torch.zeros(256, 64),
            "of_inputs": lambda: torch.zeros(1024, 512)}
