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


# ---- recurrent networks at other places, and small models of libraries

class RnnBetween(nn.Module):
    """Layers before, a GRU, layers behind; the last step alone is used."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(40)
        self.inp = nn.Linear(40, 96)
        self.gru = nn.GRU(96, 128, 2, batch_first=True, dropout=0.1)
        self.a = nn.Linear(128, 64)
        self.b = nn.Linear(64, 7)

    def forward(self, x):
        x = F.relu(self.inp(self.norm(x)))
        y, h = self.gru(x)
        return self.b(F.gelu(self.a(h[-1])))


class Encoder(nn.Module):

    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, ids):
        return self.rnn(self.embed(ids))


class Decoder(nn.Module):

    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids, h):
        y, _ = self.rnn(F.relu(self.embed(ids)), h)
        return self.out(y)


class Seq2Seq(nn.Module):
    """Two recurrent networks, each in a module of its own."""

    def __init__(self, vocab=2000, dim=128):
        super().__init__()
        self.vocab = vocab
        self.encoder = Encoder(vocab, dim)
        self.decoder = Decoder(vocab, dim)

    def forward(self, src, dst, labels):
        _, h = self.encoder(src)
        y = self.decoder(dst, h)
        return F.cross_entropy(y.reshape(-1, self.vocab), labels.reshape(-1))


class Crnn(nn.Module):
    """Convolutions, then an LSTM."""

    def __init__(self):
        super().__init__()
        self.c = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2))
        self.rnn = nn.LSTM(32 * 8, 128, bidirectional=True, batch_first=True)
        self.head = nn.Linear(256, 37)

    def forward(self, x):
        x = self.c(x)
        x = x.permute(0, 3, 1, 2).flatten(2)
        x, _ = self.rnn(x)
        return self.head(x.mean(1))


class RnnFirst(nn.Module):
    """Nothing before the recurrent network, nothing behind but a head."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(48, 80, batch_first=True)
        self.head = nn.Linear(80, 6)

    def forward(self, x):
        y, _ = self.rnn(x)
        return self.head(y[:, -1])


class RnnLoop(nn.Module):
    """Recurrent networks in a loop."""

    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(48, 64)
        self.layers = nn.ModuleList([nn.LSTM(64, 64, batch_first=True) for _ in range(2)])
        self.head = nn.Linear(64, 6)

    def forward(self, x):
        x = self.inp(x)
        for l in self.layers:
            y, _ = l(x)
            x = x + y
        return self.head(x[:, -1])


class Pick(nn.Module):
    def forward(self, x):
        return x[0]


class RnnInContainer(nn.Module):
    """A recurrent network in a container; behind it the caller takes the last step alone."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.LSTM(64, 64, batch_first=True), Pick(), nn.Linear(64, 9))

    def forward(self, x):
        return self.net(x)[:, -1]


class Block(nn.Module):

    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.rnn = nn.LSTM(d, d, batch_first=True)
        self.ff = nn.Linear(d, d)

    def forward(self, x):
        y, _ = self.rnn(self.norm(x))
        return x + F.relu(self.ff(y))


class RnnBlocks(nn.Module):
    """A block with a recurrent network, twice, called one by one."""

    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(48, 64)
        self.a = Block(64)
        self.b = Block(64)
        self.head = nn.Linear(64, 6)

    def forward(self, x):
        x = F.relu(self.inp(x))
        x = self.a(x)
        x = F.gelu(x)
        x = self.b(x)
        return self.head(x[:, -1])


class CellRnn(nn.Module):
    """A loop of cells."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(32, 64)
        self.head = nn.Linear(64, 5)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 64)
        c = x.new_zeros(x.shape[0], 64)
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
        return self.head(h)


class SliceMask(nn.Module):
    """Assigns a number to a slice."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(32, 64)
        self.b = nn.Linear(64, 5)

    def forward(self, x):
        m = x.new_ones(x.shape[0], 64)
        m[:, :8] = 0
        m[:, 8:16] = 2
        return self.b(F.relu(self.a(x)) * m)


class DropoutMlp(nn.Module):

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(128, 256), nn.BatchNorm1d(256), nn.SiLU(), nn.Dropout(0.3), nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU(), nn.Dropout(0.1), nn.Linear(256, 10))

    def forward(self, x):
        return self.net(x)


class Generator(nn.Module):

    def __init__(self, z=64, w=16):
        super().__init__()
        self.fc = nn.Linear(z, w * 8 * 16)
        self.w = w
        self.net = nn.Sequential(nn.BatchNorm2d(8 * w), nn.ReLU(True), nn.ConvTranspose2d(8 * w, 4 * w, 4, 2, 1, bias=False), nn.BatchNorm2d(4 * w), nn.ReLU(True), nn.ConvTranspose2d(4 * w, 2 * w, 4, 2, 1, bias=False), nn.BatchNorm2d(2 * w), nn.ReLU(True), nn.ConvTranspose2d(2 * w, 3, 3, 2, 1, 1), nn.Tanh())

    def forward(self, z):
        return self.net(self.fc(z).view(-1, 8 * self.w, 4, 4))


class ConvAutoencoder(nn.Module):

    def __init__(self):
        super().__init__()
        self.e = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.InstanceNorm2d(16, affine=True), nn.ELU(), nn.Conv2d(16, 32, 3, 2, 1), nn.GroupNorm(4, 32), nn.Mish())
        self.d = nn.Sequential(nn.ConvTranspose2d(32, 16, 2, 2), nn.PReLU(), nn.ConvTranspose2d(16, 3, 2, 2), nn.Sigmoid())

    def forward(self, x):
        return self.d(self.e(x))


def hf(config, cls, **k):
    import transformers as T
    c = getattr(T, config)(**k)
    c._attn_implementation = 'sdpa'
    return getattr(T, cls)(c)


def timm(name, **k):
    import timm as M
    return M.create_model(name, **k)


def tv(name, **k):
    import torchvision
    return getattr(torchvision.models, name)(**k)


class CausalLoss(nn.Module):

    def __init__(self, m, vocab):
        super().__init__()
        self.m = m
        self.vocab = vocab

    def forward(self, ids, labels):
        return F.cross_entropy(self.m(ids, use_cache=False).logits.flatten(0, 1), labels.flatten())


class MaskedLoss(nn.Module):

    def __init__(self, m, vocab):
        super().__init__()
        self.m = m
        self.vocab = vocab

    def forward(self, ids, labels):
        return F.cross_entropy(self.m(ids).logits.flatten(0, 1), labels.flatten())


seqf = lambda f, k: lambda c: (c.real(c.batch, c.seq, f), c.ints(k, c.batch))


register('rnn_between', lambda: ClassifierLoss(RnnBetween(), 7), seqf(40, 7), 'rnn', 16, seq=30)


register('seq2seq', Seq2Seq, lambda c: (c.ints(2000, c.batch, c.seq), c.ints(2000, c.batch, c.seq), c.ints(2000, c.batch, c.seq)), 'rnn', 8, seq=24)


register('crnn', lambda: ClassifierLoss(Crnn(), 37), lambda c: (c.real(c.batch, 1, 32, 100), c.ints(37, c.batch)), 'rnn', 8)


register('rnn_first', lambda: ClassifierLoss(RnnFirst(), 6), seqf(48, 6), 'rnn', 16, seq=20)


register('rnn_loop', lambda: ClassifierLoss(RnnLoop(), 6), seqf(48, 6), 'rnn', 16, seq=20)


register('rnn_in_container', lambda: ClassifierLoss(RnnInContainer(), 9), seqf(32, 9), 'rnn', 16, seq=20)


register('rnn_blocks', lambda: ClassifierLoss(RnnBlocks(), 6), seqf(48, 6), 'rnn', 16, seq=20)


register('cell_rnn', lambda: ClassifierLoss(CellRnn(), 5), seqf(32, 5), 'rnn', 16, seq=6)


register('slice_mask', lambda: ClassifierLoss(SliceMask(), 5), lambda c: (c.real(c.batch, 32), c.ints(5, c.batch)), 'mlp', 16)


register('dropout_mlp', lambda: ClassifierLoss(DropoutMlp(), 10), lambda c: (c.real(c.batch, 128), c.ints(10, c.batch)), 'mlp', 64)


register('generator', lambda: RegressionLoss(Generator()), lambda c: (c.real(c.batch, 64), c.real(c.batch, 3, 32, 32)), 'cnn', 16)


register('conv_autoencoder', lambda: RegressionLoss(ConvAutoencoder()), lambda c: (c.real(c.batch, 3, 64, 64), c.real(c.batch, 3, 64, 64)), 'cnn', 8)


img = lambda k, s: lambda c: (c.real(c.batch, 3, s, s), c.ints(k, c.batch))


register('mnasnet0_5', lambda: ClassifierLoss(tv('mnasnet0_5', num_classes=20), 20), img(20, 96), 'cnn', 4)


register('vit_timm_small', lambda: ClassifierLoss(timm('vit_tiny_patch16_224', img_size=64, depth=3, num_classes=20), 20), img(20, 64), 't', 4)


register('convnext_atto', lambda: ClassifierLoss(timm('convnext_atto', num_classes=20), 20), img(20, 64), 'cnn', 4)


register('mobilenetv3_timm', lambda: ClassifierLoss(timm('mobilenetv3_small_050', num_classes=20), 20), img(20, 64), 'cnn', 8)


lm = lambda v: lambda c: (c.ints(v, c.batch, c.seq), c.ints(v, c.batch, c.seq))


register('gpt_neox_small', lambda: CausalLoss(hf('GPTNeoXConfig', 'GPTNeoXForCausalLM', vocab_size=1000, hidden_size=128, num_hidden_layers=2, intermediate_size=256, num_attention_heads=4, max_position_embeddings=128), 1000), lm(1000), 't', 4, seq=64)


register('albert_small', lambda: MaskedLoss(hf('AlbertConfig', 'AlbertForMaskedLM', vocab_size=1000, embedding_size=64, hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=256), 1000), lm(1000), 't', 4, seq=64)


register('qwen2_small', lambda: CausalLoss(hf('Qwen2Config', 'Qwen2ForCausalLM', vocab_size=1000, hidden_size=128, num_hidden_layers=2, intermediate_size=256, num_attention_heads=4, num_key_value_heads=2), 1000), lm(1000), 't', 4, seq=64)


# Drawn at random from timm, torchvision and transformers; configurations made small where they name a size.
SMALL = dict(
    vocab_size=1000, hidden_size=128, d_model=128, num_hidden_layers=2, num_layers=2, encoder_layers=2, decoder_layers=2,
    num_encoder_layers=2, num_decoder_layers=2, intermediate_size=256, ffn_dim=256, encoder_ffn_dim=256, decoder_ffn_dim=256,
    num_attention_heads=4, num_heads=4, encoder_attention_heads=4, decoder_attention_heads=4, num_encoder_attention_heads=4,
    num_decoder_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128, embedding_size=64,
    attention_types=[[['global', 'local'], 1]], head_dim=32, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    decoder_start_token_id=0, window_size=32)


def drawn(kind, cls):
    import transformers as T
    config = T.AutoConfig.for_model(kind)
    known = set(config.to_dict()) | set(config.attribute_map)
    sizes = {name: size for name, size in SMALL.items() if name in known}
    if kind == 'gpt_neo':
        sizes.pop('num_hidden_layers', None)
    config = type(config)(**sizes)
    try:
        config._attn_implementation = 'sdpa'
        return getattr(T, cls)(config)
    except ValueError:
        config._attn_implementation = 'eager'
        return getattr(T, cls)(config)


for name, source, size in (('densenet121', timm, 96), ('deit_tiny_patch16_224', timm, 224), ('ghostnet_130', timm, 96),
                           ('mobilevit_xs', timm, 128), ('mobileone_s1', timm, 96), ('starnet_s3', timm, 96),
                           ('efficientnet_b2', tv, 96), ('shufflenet_v2_x1_5', tv, 96), ('ghostnetv2_130', timm, 96),
                           ('cpubone_s0', timm, 96), ('tf_efficientnet_b0', timm, 96), ('squeezenet1_0', tv, 96)):
    register(name + '_drawn', lambda name=name, source=source: ClassifierLoss(source(name, num_classes=20), 20), img(20, size), 'cnn', 4)

for kind, cls in (('granite', 'GraniteForCausalLM'), ('olmo', 'OlmoForCausalLM'), ('bitnet', 'BitNetForCausalLM'),
                  ('prophetnet', 'ProphetNetForCausalLM'), ('gpt_neo', 'GPTNeoForCausalLM')):
    register(kind + '_drawn', lambda kind=kind, cls=cls: CausalLoss(drawn(kind, cls), 1000), lm(1000), 't', 4, seq=64)

register('gptj_drawn', lambda: CausalLoss(hf('GPTJConfig', 'GPTJForCausalLM', vocab_size=1000, n_positions=128, n_embd=128, n_layer=2, n_head=4, rotary_dim=16, bos_token_id=1, eos_token_id=2), 1000), lm(1000), 't', 4, seq=64)

for kind, cls in (('ernie', 'ErnieForMaskedLM'), ('deberta-v2', 'DebertaV2ForMaskedLM'), ('electra', 'ElectraForMaskedLM'), ('eurobert', 'EuroBertForMaskedLM')):
    register(kind.replace('-', '_') + '_drawn', lambda kind=kind, cls=cls: MaskedLoss(drawn(kind, cls), 1000), lm(1000), 't', 4, seq=64)
