import torch
import torchvision

model = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=91).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images = [torch.rand(3, 480, 640, device="cuda") for _ in range(2)]
targets = [{"boxes": torch.tensor([[10.0, 10.0, 200.0, 200.0], [50.0, 60.0, 300.0, 400.0]], device="cuda"),
            "labels": torch.tensor([1, 2], device="cuda")} for _ in range(2)]
for step in range(2):
    losses = model(images, targets)
    sum(losses.values()).backward()
    optimizer.step()
    optimizer.zero_grad()
model.eval()
with torch.no_grad():
    print("boxes", [len(found["boxes"]) for found in model(images)])
