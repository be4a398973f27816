"""Models with attention whose source copies tensors on a GPU that are contiguous elsewhere; the forward gives the loss.

    python tools/record/attention_programs.py export FOLDER     writes NAME.cpu.pt2 and NAME.meta.pt2 of each; needs PyTorch alone
    python tools/record/attention_programs.py record FOLDER     writes NAME.json, what two steps take, by `metaprof run` (METAPROF names the program)

`metaprof check FOLDER/NAME.cpu.pt2 --against FOLDER/NAME.json` compares.
"""
import contextlib
import sys

import torch
from lifetime_programs import main, pack, train_steps
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

WIDTH, HEADS, LENGTH, BATCH = 64, 4, 12, 4


class OverSequence(nn.Module):
    """The mean over a sequence, and a linear head."""

    def __init__(self, net, sequence_first=False):
        super().__init__()
        self.net, self.head, self.dim = net, nn.Linear(WIDTH, 5), 0 if sequence_first else 1

    def forward(self, x, labels):
        y = self.net(x)
        return F.cross_entropy(self.head(y.mean(self.dim)), labels)


class Attention(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.keys, self.values = nn.Linear(WIDTH, options.get("kdim", WIDTH)), nn.Linear(WIDTH, options.get("vdim", WIDTH))
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, **options)

    def forward(self, x):
        y, _ = self.attention(x, self.keys(x), self.values(x), need_weights=False)
        return y


class CausalDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(WIDTH, HEADS, 128, 0.0, batch_first=True), 2)
        self.memory = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        return self.decoder(x, self.memory(x), tgt_mask=mask, tgt_is_causal=True)


class Whole(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.transformer = nn.Transformer(WIDTH, HEADS, 1, 1, 128, **options)

    def forward(self, x):
        return self.transformer(x, x)


class CopyInLine(nn.Module):
    """The copy is not needed to view, and stands at the end of its line."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.packed, self.out, self.dropout = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), dropout

    def forward(self, x):
        t, b, c = x.shape
        q, k, v = self.packed(x).chunk(3, -1)
        q = q.contiguous().view(t, b * HEADS, c // HEADS).transpose(0, 1)
        k = k.contiguous().view(t, b * HEADS, c // HEADS).transpose(0, 1)
        v = v.contiguous().view(t, b * HEADS, c // HEADS).transpose(0, 1)
        q, k, v = q.view(b, HEADS, t, -1), k.view(b, HEADS, t, -1), v.view(b, HEADS, t, -1)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)
        y = y.permute(2, 0, 1, 3).contiguous()
        return self.out(y.view(t, b, c))


class CopyAlone(nn.Module):
    """The copy has a line of its own, of which an export has nothing, and is needed to view."""

    def __init__(self):
        super().__init__()
        self.packed, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        t, b, c = x.shape
        q, k, v = self.packed(x).view(t, b, 3, HEADS, c // HEADS).permute(2, 1, 3, 0, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v)
        y = y.permute(2, 0, 1, 3)
        y = y.contiguous()
        y = y.view(t * b, c)
        return self.out(y).view(t, b, c)


class Convolutions(nn.Module):
    """Between convolutions, of which meta tensors have other layouts than a GPU's."""

    def __init__(self):
        super().__init__()
        self.stem, self.conv, self.down = nn.Conv2d(3, WIDTH, 4, 4), nn.Conv2d(WIDTH, WIDTH, 3, padding=1, groups=WIDTH), nn.Conv2d(WIDTH, WIDTH, 2, 2)
        self.layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 128, 0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(WIDTH, 5)

    def forward(self, x, labels):
        x = self.stem(x)
        b, c, h, w = x.shape
        x = self.layer(x.flatten(2).transpose(1, 2))
        x = self.conv(x.transpose(1, 2).view(b, c, h, w))
        x = x.flatten(2).transpose(1, 2)
        x = x.view(b, h, w, -1).permute(0, 3, 1, 2).contiguous()
        x = self.down(x)
        return F.cross_entropy(self.head(x.flatten(2).mean(-1)), labels)


def encoder(**options):
    return nn.TransformerEncoderLayer(WIDTH, HEADS, 128, **options)


PROGRAMS = {
    "Attention": lambda: OverSequence(Attention(batch_first=True)),
    "AttentionDropout": lambda: OverSequence(Attention(batch_first=True, dropout=0.1)),
    "AttentionSequenceFirst": lambda: OverSequence(Attention(), True),
    "AttentionOtherWidths": lambda: OverSequence(Attention(batch_first=True, kdim=48, vdim=80)),
    "AttentionBiases": lambda: OverSequence(Attention(batch_first=True, add_bias_kv=True, add_zero_attn=True)),
    "Encoder": lambda: OverSequence(encoder(dropout=0.0, batch_first=True)),
    "EncoderNormFirst": lambda: OverSequence(encoder(dropout=0.0, norm_first=True, activation="gelu"), True),
    "CausalDecoder": lambda: OverSequence(CausalDecoder()),
    "Whole": lambda: OverSequence(Whole(dropout=0.0), True),
    "CopyInLine": lambda: OverSequence(CopyInLine(), True),
    "CopyInLineDropout": lambda: OverSequence(CopyInLine(0.1), True),
    "CopyAlone": lambda: OverSequence(CopyAlone(), True),
    "Convolutions": Convolutions,
}


def inputs_of(name, module):
    if name == "Convolutions":
        return torch.rand(BATCH, 3, 32, 32), torch.zeros(BATCH, dtype=torch.int64)
    sizes = (LENGTH, BATCH, WIDTH) if module.dim == 0 else (BATCH, LENGTH, WIDTH)
    return torch.rand(sizes), torch.zeros(BATCH, dtype=torch.int64)


def export(name, folder):
    for device in "cpu", "meta":
        without_data = FakeTensorMode(allow_non_fake_inputs=True) if device == "cpu" else contextlib.nullcontext()
        with without_data, torch.device(device):
            module = PROGRAMS[name]()
            exported = torch.export.export(module, inputs_of(name, module), strict=False)
        file = folder / f"{name}.{device}.pt2"
        torch.export.save(exported, file)
        pack(file)


def train(name):
    module = PROGRAMS[name]()
    train_steps(module, inputs_of(name, module))


if __name__ == "__main__":
    sys.exit(main(PROGRAMS, export, train))
