import torch, torchvision

def make():
    with torch.device("meta"):  # no weights, no memory
        model = torchvision.models.resnet50()
    return model, (torch.empty(32, 3, 224, 224), torch.zeros(32, dtype=torch.long))
