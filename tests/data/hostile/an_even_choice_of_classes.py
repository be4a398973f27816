# an even choice of classes
# options: --assume even
# status: 0
# says: found [0, 1, 2, 3, 4, 5, 6, 7] [16, 16, 16, 16, 16, 16, 16, 16] 16 [16, 16, 16, 16, 16, 16, 16, 16]
from training import *

chosen = torch.rand(64, 8, device='cuda').topk(2).indices
mask = torch.nn.functional.one_hot(chosen, 8).permute(2, 1, 0)
hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
counts = [len(torch.where(mask[expert[0]])[0]) for expert in hit]
print('found', hit.flatten().tolist(), counts, len(chosen[chosen == 3]), torch.bincount(chosen.flatten(), minlength=8).tolist())
step()
