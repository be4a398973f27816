"""Models whose archives (torch.jit.save) are evidence: torchvision's, each with its loss, and some of ours."""
import torch
import torch.nn.functional as F


class WithLoss(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        return F.cross_entropy(self.model(x), labels)


class WithLossOfLogits(WithLoss):
    """Of a model that returns its auxiliary outputs in a named tuple."""

    def forward(self, x, labels):
        return F.cross_entropy(self.model(x).logits, labels)


class Loops(torch.nn.Module):
    """Lists, a dictionary, loops over numbers and layers, a recurrent network."""

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(1000, 256)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(256, 256) for _ in range(4)])
        self.recurrent = torch.nn.LSTM(256, 128, 2, batch_first=True)

    def forward(self, ids: torch.Tensor, times: int, scale: float = 0.5):
        x = self.table(ids)
        named = {"first": x}
        outputs = []
        for i in range(times):
            x = x * scale + i
            outputs.append(x.relu())
        k = 0
        while k < 3:
            x = torch.tanh(x)
            k += 1
        for layer in self.layers:
            x = layer(x)
        y, _ = self.recurrent(x)
        return y.sum() + torch.cat(outputs, -1).sum() + named["first"].mean()


class Traced(torch.nn.Module):
    """What torch.jit.trace makes: shapes as numbers, training as a constant."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 64, 3), torch.nn.BatchNorm2d(64)
        self.head = torch.nn.Linear(64, 10)

    def forward(self, x, labels):
        y = F.relu(self.norm(self.conv(x)))
        y = y.view(y.shape[0], 64, -1).mean(-1)
        return F.cross_entropy(self.head(y), labels)


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2)

    def forward(self, x):
        return self.encoder(x).mean()


IMAGES = {"x": ("f32", [4, 3, 224, 224]), "labels": ("i64", [4])}
TORCHVISION = (
    "alexnet convnext_tiny densenet121 efficientnet_b0 googlenet inception_v3 maxvit_t mnasnet1_0 mobilenet_v2 "
    "mobilenet_v3_small regnet_y_400mf resnet18 resnet50 resnext50_32x4d shufflenet_v2_x1_0 squeezenet1_1 swin_t "
    "swin_v2_t vgg11_bn vit_b_16"
).split()
WITH_LOGITS = ("googlenet", "inception_v3")


def torchvision_model(name):
    import torchvision

    make = getattr(torchvision.models, name)
    if name in WITH_LOGITS:
        return WithLossOfLogits(make(weights=None, init_weights=False))
    return WithLoss(make(weights=None))


def scripted(name):
    """The scripted model, and what its forward takes: (dtype, sizes), or a number."""
    if name == "loops":
        return torch.jit.script(Loops()), {"ids": ("i64", [8, 64]), "times": 3}
    if name == "encoder":
        return torch.jit.script(Encoder()), {"x": ("f32", [8, 64, 256])}
    if name == "traced":
        inputs = {"x": ("f32", [8, 3, 64, 64]), "labels": ("i64", [8])}
        example = (torch.randn(8, 3, 64, 64), torch.zeros(8, dtype=torch.int64))
        return torch.jit.trace(Traced(), example), inputs
    sizes = 299 if name == "inception_v3" else 224
    return torch.jit.script(torchvision_model(name)), {**IMAGES, "x": ("f32", [4, 3, sizes, sizes])}


NAMES = TORCHVISION + ["loops", "encoder", "traced"]
