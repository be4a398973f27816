import torch

net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 14 * 14, 4)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
scaler = torch.amp.GradScaler("cuda")
averaged = torch.optim.swa_utils.AveragedModel(net)
for step in range(4):
    for _ in range(2):
        images, labels = torch.zeros(4, 3, 16, 16).cuda(), torch.zeros(4, dtype=torch.long).cuda()
        with torch.autocast("cuda", torch.float16):
            loss = torch.nn.functional.cross_entropy(net(images), labels) / 2
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=step % 2 == 0)
    averaged.update_parameters(net)
    net.eval()
    with torch.no_grad():
        net(images)
    net.train()
print("the program has ended")
