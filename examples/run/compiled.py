import torch

torch.set_float32_matmul_precision("high")
model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 4).cuda()
model = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters())
x = torch.randn(8, 256, 512, device="cuda")
for step in range(4):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print("peak", torch.cuda.max_memory_allocated())
