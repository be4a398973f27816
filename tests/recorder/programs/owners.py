"""Programs that hold memory in different ways. `owners.py NAME` runs one.

`@held("outputs (", 0.9)`: at the peak, variables whose text begins so hold this share of what is allocated, at least.
"""
import collections
import contextlib
import copy
import dataclasses
import os
import random
import sys
import tempfile

import torch
from torch import nn

MI = 1 << 20


def held(*owners):
    """`owners`: beginning of a variable's text, share, and so on."""
    def mark(program):
        return program
    return mark


def filled(mebibytes):
    return torch.ones(mebibytes * MI // 4, device="cuda")


def net(width=1024, depth=4):
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.Tanh())]
    return nn.Sequential(*layers, nn.Linear(width, 16)).cuda()


def batch(rows=256, width=1024):
    return torch.randn(rows, width, device="cuda")


@held("outputs (", 0.8)
def evaluation_outputs():
    """All outputs of an evaluation are gathered on the device."""
    model = net().eval()
    head = nn.Linear(16, 4096).cuda()
    outputs = []
    with torch.no_grad():
        for _ in range(100):
            outputs.append(head(model(batch())))
    print(len(outputs))


@held("losses (", 0.7)
def losses_with_graphs():
    """Losses are summed up as tensors: each keeps its graph."""
    model = net()
    losses = []
    for _ in range(24):
        losses.append(model(batch(512)).square().mean())
    print(sum(losses).item())


@held("shadow (", 0.4, "model (", 0.4)
def moving_average():
    """A copy of the weights follows them."""
    model = net(512, 96)
    shadow = copy.deepcopy(model).requires_grad_(False)
    for _ in range(3):
        with torch.no_grad():
            model(batch(8, 512))
            for slow, fast in zip(shadow.parameters(), model.parameters()):
                slow.lerp_(fast, 0.01)


@held("step (", 0.9)
def closure():
    """A function knows a table that no other variable leads to."""
    def made():
        table = filled(256)

        def step(x):
            return x + table[:1024]
        return step
    step = made()
    for _ in range(3):
        step(batch(8))
    print(step)


@held("caches (", 0.6)
def keys_and_values():
    """A generation keeps the keys and values of all earlier positions."""
    query, key, value = (nn.Linear(1024, 1024, bias=False).cuda() for _ in range(3))
    caches = [{"keys": torch.empty(16, 0, 1024, device="cuda"), "values": torch.empty(16, 0, 1024, device="cuda")} for _ in range(12)]
    with torch.no_grad():
        for _ in range(64):
            x = torch.randn(16, 1, 1024, device="cuda")
            for cache in caches:
                cache["keys"] = torch.cat([cache["keys"], key(x)], dim=1)
                cache["values"] = torch.cat([cache["values"], value(x)], dim=1)
                weights = (query(x) @ cache["keys"].transpose(1, 2)).softmax(-1)
                x = weights @ cache["values"]


@held("features (", 0.7)
def hooks():
    """Hooks store what layers gave."""
    model = net()
    features = collections.defaultdict(list)
    for index, layer in enumerate(model):
        layer.register_forward_hook(lambda _module, _inputs, result, index=index: features[index].append(result))
    with torch.no_grad():
        for _ in range(20):
            model(batch(1024))


@held("optimizer (", 0.4, "model (", 0.4)
def states():
    """AdamW has two states for each weight."""
    model = net(512, 96)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for _ in range(2):
        model(batch(8, 512)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@held("model (", 0.7)
def one_process_ddp():
    """Gradients of DistributedDataParallel stand in its buckets."""
    with tempfile.NamedTemporaryFile() as store:
        torch.distributed.init_process_group("nccl", init_method=f"file://{store.name}", rank=0, world_size=1)
        model = nn.parallel.DistributedDataParallel(net(512, 96), gradient_as_bucket_view=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
        for _ in range(3):
            model(batch(8, 512)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.distributed.destroy_process_group()


@held("model (", 0.7)
def accumulation():
    """Gradients stay from one batch to the next."""
    model = net(512, 96)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    for index in range(8):
        model(batch(8, 512)).sum().backward()
        if index % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()


class Adapted(nn.Module):
    def __init__(self, base, rank=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a, self.b = nn.Linear(base.in_features, rank, bias=False), nn.Linear(rank, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))


@held("model (", 0.55)
def lora():
    """Small adapters are trained beside frozen weights."""
    model = nn.Sequential(*(Adapted(nn.Linear(512, 512)) for _ in range(96))).cuda()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
    for _ in range(3):
        model(batch(8, 512)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@held("batches (", 0.9)
def exception():
    """A function failed; while its error is handled, its variables stay."""
    def fails():
        batches = [filled(16) for _ in range(16)]
        raise ValueError(f"{len(batches)} batches")
    try:
        fails()
    except ValueError as error:
        more = filled(4)
        print(error, more.shape)


@held("batches (", 0.65)
def preloaded():
    """All batches of an epoch are on the device before it begins."""
    model = net()
    batches = [batch(2048) for _ in range(32)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in batches[:3]:
        model(x[:16]).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@held("model (", 0.7)
def fsdp():
    """Fully sharded, over one process."""
    from torch.distributed.fsdp import fully_shard
    with tempfile.NamedTemporaryFile() as store:
        torch.distributed.init_process_group("nccl", init_method=f"file://{store.name}", rank=0, world_size=1)
        model = net(512, 96)
        for layer in model:
            if isinstance(layer, nn.Linear):
                fully_shard(layer)
        fully_shard(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
        for _ in range(3):
            model(batch(8, 512)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        torch.distributed.destroy_process_group()


@held("model (", 0.6, "copies of parameters in another dtype", 0.15)
def autocast_casts():
    """Within autocast each weight has a copy in 16 bits, until the region ends."""
    model = net(512, 96)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    for _ in range(3):
        with torch.autocast("cuda", torch.bfloat16):
            model(batch(8, 512)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@held("state (", 0.7)
def hidden_states():
    """The state of a recurrent network goes on from batch to batch, with the graph of all that came before."""
    cell, head = nn.GRUCell(256, 1024).cuda(), nn.Linear(1024, 1).cuda()
    state = torch.zeros(512, 1024, device="cuda")
    total = 0.0
    for _ in range(24):
        state = cell(torch.randn(512, 256, device="cuda"), state)
        total += head(state).mean().item()
    print(total)


class Replay:
    def __init__(self, size):
        self.states, self.rewards = torch.zeros(size, 4, 84, 84, dtype=torch.uint8, device="cuda"), torch.zeros(size, device="cuda")
        self.at = 0

    def add(self, state, reward):
        self.states[self.at], self.rewards[self.at] = state, reward
        self.at += 1

    def sample(self, count):
        index = torch.tensor(random.sample(range(self.at), count), device="cuda")
        return self.states[index].float(), self.rewards[index]


@held("memory.states (", 0.8)
def replay_buffer():
    """What was played stays on the device."""
    memory = Replay(20_000)
    value = nn.Sequential(nn.Flatten(), nn.Linear(4 * 84 * 84, 64), nn.ReLU(), nn.Linear(64, 1)).cuda()
    optimizer = torch.optim.SGD(value.parameters(), lr=0.1)
    for _ in range(4):
        for _ in range(8):
            memory.add(torch.randint(255, (4, 84, 84), device="cuda"), 1.0)
        states, rewards = memory.sample(8)
        nn.functional.mse_loss(value(states).squeeze(1), rewards).backward()
        optimizer.step()
        optimizer.zero_grad()


@held("teacher (", 0.5)
def teacher_and_student():
    teacher, student = net(512, 96).eval(), net(256, 8)
    smaller = nn.Linear(512, 256).cuda()
    optimizer = torch.optim.SGD([*student.parameters(), *smaller.parameters()], lr=0.1, foreach=False)
    for _ in range(3):
        x = batch(8, 512)
        with torch.no_grad():
            wanted = teacher(x)
        nn.functional.mse_loss(student(smaller(x)), wanted).backward()
        optimizer.step()
        optimizer.zero_grad()


@held("gradient (", 0.4, "score (", 0.2)
def gradient_penalty():
    """The gradient of an input is part of the loss: its own graph is kept."""
    critic = net(256, 40)
    x = torch.randn(4096, 256, device="cuda", requires_grad=True)
    score = critic(x)
    gradient, = torch.autograd.grad(score.sum(), x, create_graph=True)
    penalty = (gradient.norm(dim=1) - 1).square().mean()
    print(penalty.item())
    penalty.backward()


@held("checkpoint (", 0.4, "model (", 0.4)
def loaded_checkpoint():
    """A checkpoint is loaded to the device, and stays there while the model trains."""
    model = net(512, 96)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "net.pt")
        torch.save({"model": model.state_dict(), "step": 3}, file)
        checkpoint = torch.load(file, map_location="cuda")
    model.load_state_dict(checkpoint["model"])
    with torch.no_grad():
        model(batch(8, 512))
    print(checkpoint["step"])


@dataclasses.dataclass
class Rollout:
    observations: torch.Tensor
    values: torch.Tensor


@held("rollout.observations (", 0.8)
def data_class():
    rollout = Rollout(torch.randn(64, 4096, 256, device="cuda"), torch.zeros(64, 4096, device="cuda"))
    value = nn.Linear(256, 1).cuda()
    with torch.no_grad():
        for index in range(4):
            rollout.values[index] = value(rollout.observations[index]).squeeze(1)


@held("trainer.history (", 0.8)
def attribute_of_trainer():
    class Trainer:
        def __init__(self):
            self.model, self.history = net(512, 2), []

        def fit(self):
            with torch.no_grad():
                for _ in range(32):
                    x = batch(4096, 512)
                    self.model(x[:8])
                    self.history.append(x)
    trainer = Trainer()
    trainer.fit()


@held("source (", 0.8)
def generator():
    """A generator is in the middle of its work."""
    def produce():
        window = collections.deque(maxlen=16)
        while True:
            window.append(batch(4096, 1024))
            yield torch.stack([x[0] for x in window]).mean(0)
    source = produce()
    model = net()
    with torch.no_grad(), contextlib.closing(source):
        for _ in range(20):
            model(next(source))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
