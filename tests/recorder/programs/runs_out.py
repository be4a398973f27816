"""Programs that run out of memory, each for another reason. `runs_out.py NAME` runs one.

`@helped(SIZE, "batch", …)`: on a device of this memory it runs out, and with each of these changes it does not.
"""
import os
import sys
import tempfile

import torch
from torch import nn


def helped(memory, *names):
    """`names`: as `--fixes` calls changes, up to their "="."""
    def mark(program):
        return program
    return mark


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Net(nn.Module):
    def __init__(self, width, depth=4):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def trained(net, batches, **options):
    optimizer = torch.optim.AdamW(net.parameters(), **options)
    for x, y in batches:
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@helped("1GiB", "checkpoint", "autocast", "batch")
def own_batch():
    """A batch that is too large, made by the program itself: what its captured steps say is told."""
    rows = 40_000
    trained(Net(256).cuda(), ((torch.randn(rows, 256, device="cuda"), torch.randint(10, (rows,), device="cuda")) for _ in range(2)))


@helped("640MiB", "checkpoint", "autocast", "batch")
def data_loader():
    data = torch.utils.data.TensorDataset(torch.randn(20_000, 64), torch.randint(10, (20_000,)))
    trained(nn.Sequential(nn.Linear(64, 512), Net(512)).cuda(), torch.utils.data.DataLoader(data, batch_size=10_000))


@helped("1500MiB", "no_grad")
def evaluation():
    """Losses of an evaluation in training mode are kept, with their graphs."""
    net = Net(1024).cuda()
    trained(net, ((torch.randn(512, 1024), torch.randint(10, (512,))) for _ in range(2)))
    losses = []
    for _ in range(30):
        losses.append(nn.functional.cross_entropy(net(torch.randn(512, 1024, device="cuda")), torch.zeros(512, dtype=torch.long, device="cuda")))
    print(torch.stack(losses).mean())


@helped("1100MiB", "fused", "foreach")
def adam_states():
    """The first step of an optimizer makes its states, and in lists what it computes with, too."""
    trained(Net(1024, 7).cuda(), ((torch.randn(8, 1024), torch.randint(10, (8,))) for _ in range(2)), foreach=True)


@helped("640MiB", "map_location")
def checkpoint():
    """What a checkpoint was loaded to stays on the device beside the model."""
    net = Net(1024, 4)
    with tempfile.TemporaryDirectory() as folder:
        torch.save(net.state_dict(), os.path.join(folder, "net.pt"))
        net.cuda()
        loaded = torch.load(os.path.join(folder, "net.pt"), map_location="cuda")
    net.load_state_dict(loaded)
    trained(net, ((torch.randn(8, 1024), torch.randint(10, (8,))) for _ in range(2)), foreach=False)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
