import torch, torchvision

class WithLoss(torch.nn.Module):                   # metaprof runs a training step: it needs the loss
    def __init__(self, model, loss):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, x, labels):
        return self.loss(self.model(x), labels)

with torch.device("meta"):                         # no weights, no memory
    model = WithLoss(torchvision.models.resnet50(), torch.nn.CrossEntropyLoss())
    example = (torch.empty(32, 3, 224, 224), torch.empty(32, dtype=torch.long))
batch = torch.export.Dim("batch", max=4096)        # so that --batch and fit can change it
torch.export.save(torch.export.export(model, example, dynamic_shapes=({0: batch}, {0: batch})), "resnet50.pt2")
