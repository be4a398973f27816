# Encoder layers in eval mode, where one operator is a whole layer. encoder.mp and encoder_masked.mp are what
# `metaprof run --device h200 --save FILE.mp -- python encoder.py [masked]` captured with PyTorch 2.11.
import sys

import torch
from torch import nn

masked = sys.argv[1:] == ["masked"]
options = {"activation": "gelu", "norm_first": True} if masked else {}
layer = nn.TransformerEncoderLayer(256, 8, 512, batch_first=True, **options)
model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not masked).cuda().eval()
x = torch.randn(4, 128, 256, device="cuda")
with torch.no_grad():
    model(x, src_key_padding_mask=torch.zeros(4, 128, dtype=torch.bool, device="cuda") if masked else None)
torch.cuda.synchronize()
