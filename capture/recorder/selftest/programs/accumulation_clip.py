"""Three micro-batches a step in fp16 with a gradient scaler, and the gradients' norm is clipped."""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.LayerNorm(2048), nn.Dropout(0.1), nn.Linear(2048, 512), nn.GELU(), nn.Linear(512, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda", init_scale=2.0 ** 8)
parts = [(torch.randn(64, 512).cuda(), torch.randint(10, (64,)).cuda()) for _ in range(3)]
for _ in range(3):
    for x, labels in parts:
        with torch.autocast("cuda", torch.float16):
            loss = nn.functional.cross_entropy(model(x), labels) / len(parts)
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
