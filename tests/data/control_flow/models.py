"""Models with torch.cond, while_loop, scan and map, whose conditions follow from an input (tools/record/record_control_flow.py)."""
import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops import map as map_over
from torch._higher_order_ops import scan, while_loop


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


class NarrowOrWide(WideOrNarrow):
    """The other way round: the larger function is the second one."""

    def forward(self, x, flag):
        x = torch.relu(self.head(x))
        x = torch.cond(flag.sum() > 0, lambda x: torch.sin(self.narrow(x)), lambda x: self.back(F.gelu(self.wide(x))), (x,))
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


class OfInputsAndWeights(nn.Module):
    """An operand that needs no gradient beside ones that do, and a function that gives back what it is given."""

    def __init__(self):
        super().__init__()
        self.layer, self.last = nn.Linear(512, 512), nn.Linear(512, 512)

    def forward(self, x, flag):
        y = torch.cond(flag.sum() > 0, lambda x: torch.tanh(self.layer(x)), lambda x: self.layer(x) + x, (x,))
        y = torch.cond(flag.sum() > 0, lambda y: torch.sin(y), lambda y: y + 1, (y,))
        return self.last(y).square().sum()


class Refined(nn.Module):
    """A layer that is applied until a counter on the device says that it is enough."""

    def __init__(self):
        super().__init__()
        self.head, self.layer, self.tail = nn.Linear(256, 512), nn.Linear(512, 512), nn.Linear(512, 16)

    def forward(self, x, trips):
        def body(i, x):
            return i + 1, torch.tanh(self.layer(x)) + x

        i = torch.zeros((), device=x.device)
        _, x = while_loop(lambda i, x: i < trips.sum() / 4, body, (i, self.head(x)))
        return self.tail(x).square().mean()


class CountedOnTheHost(nn.Module):
    """The counter is on the host, and the first state needs no gradient."""

    def __init__(self):
        super().__init__()
        self.into, self.back, self.tail = nn.Linear(128, 512), nn.Linear(512, 128), nn.Linear(128, 8)

    def forward(self, x, trips):
        limit = trips.sum().cpu()

        def body(i, x, y):
            return i + 4, self.back(F.gelu(self.into(x))), y * 0.5 + x

        i = torch.zeros((), device="cpu")
        _, x, y = while_loop(lambda i, x, y: i < limit, body, (i, x, x * 2))
        return self.tail(x + y).sum()


class Recurrent(nn.Module):
    """A network whose state goes from a step to the next one."""

    def __init__(self):
        super().__init__()
        self.step, self.state, self.tail = nn.Linear(64, 256), nn.Linear(256, 256), nn.Linear(256, 8)

    def forward(self, x, _):
        def step(h, x):
            h = torch.tanh(self.step(x) + self.state(h))
            return h, h * 1.0

        h, hs = scan(step, x.new_zeros(x.shape[1], 256), x)
        return self.tail(hs).square().mean() + h.sum()


class Decayed(nn.Module):
    """Sums that decay, from the last element to the first, in the second dimension."""

    def __init__(self):
        super().__init__()
        self.layer, self.decay = nn.Linear(128, 128), nn.Parameter(torch.zeros(128))

    def forward(self, x, _):
        def step(carry, x):
            carry = carry * torch.sigmoid(self.decay) + x
            return carry, F.silu(carry)

        x = self.layer(x)
        _, ys = scan(step, torch.zeros_like(x[:, 0]), x, dim=1, reverse=True)
        return ys.square().sum()


class PerElement(nn.Module):
    """A network that is applied to one element of the batch after the other."""

    def __init__(self):
        super().__init__()
        self.into, self.back = nn.Linear(128, 512), nn.Linear(512, 128)

    def forward(self, x, _):
        return map_over(lambda x: self.back(F.gelu(self.into(x))), x).square().mean()


class PerHead(nn.Module):
    """Several tensors are mapped, and several come out, behind a layer."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(256, 768), nn.Linear(256, 256)

    def forward(self, x, _):
        # What is mapped may not look into one memory.
        q, k, v = (part.contiguous() for part in self.qkv(x).view(x.shape[0], 8, 96).transpose(0, 1).chunk(3, 2))

        def head(qkv):
            q, k, v = qkv
            weights = torch.softmax(q @ k.transpose(0, 1), 1)
            return weights @ v, q + k

        y, z = map_over(head, (q, k, v))
        return (self.out(y.transpose(0, 1).flatten(1)) + z.transpose(0, 1).flatten(1)).square().mean()


MODELS = {"wide_or_narrow": WideOrNarrow, "narrow_or_wide": NarrowOrWide, "convolutions": Convolutions, "early_exit": EarlyExit, "inside_each_other": InsideEachOther,
          "of_inputs": OfInputs, "of_inputs_and_weights": OfInputsAndWeights, "refined": Refined, "counted_on_the_host": CountedOnTheHost,
          "recurrent": Recurrent, "decayed": Decayed, "per_element": PerElement, "per_head": PerHead}
EXAMPLES = {"wide_or_narrow": lambda: torch.zeros(512, 256), "narrow_or_wide": lambda: torch.zeros(512, 256), "convolutions": lambda: torch.zeros(4, 3, 64, 64),
            "early_exit": lambda: torch.zeros(8, 64, dtype=torch.long), "inside_each_other": lambda: torch.zeros(256, 64),
            "of_inputs": lambda: torch.zeros(1024, 512),
            "of_inputs_and_weights": lambda: torch.zeros(1024, 512), "refined": lambda: torch.zeros(1024, 256),
            "counted_on_the_host": lambda: torch.zeros(2048, 128), "recurrent": lambda: torch.zeros(12, 512, 64),
            "decayed": lambda: torch.zeros(64, 16, 128), "per_element": lambda: torch.zeros(6, 1024, 128),
            "per_head": lambda: torch.zeros(512, 256)}
# What the second input is full of, by the way that data decide: the condition, or how often a loop runs; "": nothing is decided.
CONDITIONS, TRIPS, NOTHING = {"true": 1, "false": 0}, {"0": 0, "1": 1, "4": 4}, {"": 0}
WAYS = {name: CONDITIONS for name in MODELS} | {"refined": TRIPS, "counted_on_the_host": TRIPS, "recurrent": NOTHING, "decayed": NOTHING,
                                                "per_element": NOTHING, "per_head": NOTHING}
