# torchvision's operators for regions and shifted places: in fp32, from images of channels last, under autocast.
# vision_operators.mp is what `metaprof run --device h200 --workspaces none --save FILE.mp -- python vision_operators.py` captured with
# PyTorch 2.11 and torchvision 0.26, vision_operators_amp.mp the same with the word "amp" behind it.
import sys

import torch
from torch import nn
from torchvision import ops


class Regions(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.head = nn.Linear(16 * 49, 5)

    def forward(self, x, rois):
        features = self.stem(x)
        aligned = ops.roi_align(features, rois, 7, sampling_ratio=2)
        pooled = ops.roi_pool(features, rois, 7)
        by_position = ops.ps_roi_align(features, rois, 2).mean() + ops.ps_roi_pool(features, rois, 2).mean()
        scores = self.head((aligned + pooled).flatten(1))
        kept = ops.nms(rois[:, 1:].float(), scores[:, 0].float(), 0.5)
        return scores[kept].mean() + by_position


class Shifted(nn.Module):
    def __init__(self, groups, shifts, masked, bias, stride):
        super().__init__()
        self.where = nn.Conv2d(8, 2 * 9 * shifts, 3, padding=1, stride=stride)
        self.mask = nn.Conv2d(8, 9 * shifts, 3, padding=1, stride=stride) if masked else None
        self.conv = ops.DeformConv2d(8, 12, 3, padding=1, stride=stride, groups=groups, bias=bias)

    def forward(self, x):
        return self.conv(x, self.where(x), self.mask(x) if self.mask else None).pow(2).mean()


regions = Regions().cuda()
layers = [Shifted(1, 1, True, True, 1), Shifted(2, 2, False, False, 2), Shifted(4, 1, True, True, 1)]
shifted = nn.ModuleList(layers).cuda()
batches = [4, 6, 40]  # 40: two parts of 20
images = [torch.rand(batch, 8, 24, 24, device="cuda") for batch in batches]
pictures = torch.rand(2, 3, 32, 32, device="cuda").to(memory_format=torch.channels_last)
one = torch.rand(1, 8, 24, 24, device="cuda")
rois = torch.tensor([[i % 2, 2.0 * i, 1, 2.0 * i + 8, 9] for i in range(12)], device="cuda")
optimizer = torch.optim.SGD([*regions.parameters(), *shifted.parameters()], lr=0.1)
for _ in range(2):
    with torch.autocast("cuda", torch.bfloat16, enabled="amp" in sys.argv):
        loss = regions(pictures, rois) + sum(layer(x) for layer, x in zip(shifted, images)) + shifted[0](one)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
