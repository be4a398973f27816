"""Small programs that go by what they read of their tensors. Each gives what it has read; the device is the first argument.

Nothing is drawn on the device, so that the CPU gives the same answers.
"""
import io
import math
import sys

import torch
from torch import nn
from torch.nn import functional

DEVICE = sys.argv[1]
PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def on_device(*arguments, **options):
    return torch.tensor(*arguments, **options).to(DEVICE)


def network(*sizes):
    layers = [layer for inner, outer in zip(sizes, sizes[1:]) for layer in (nn.Linear(inner, outer), nn.Tanh())]
    return nn.Sequential(*layers[:-1]).to(DEVICE)


@program
def classes_of_a_batch():
    labels = on_device([[0, 3], [1, 5], [1, 3], [4, 3]])
    images, counts = labels[:, 0].unique(return_counts=True)
    return images.tolist(), counts.max().item(), [labels[labels[:, 0] == image].shape[0] for image in range(5)]


@program
def graphs_that_are_pooled():
    batch, nodes = on_device([0, 0, 1, 1, 1, 3]), on_device([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0]])
    size = int(batch.max()) + 1
    pooled = torch.zeros(size, 1, device=DEVICE).index_add_(0, batch, nodes)
    return size, pooled.flatten().tolist(), torch.bincount(batch, minlength=size).tolist()


@program
def different_coordinates():
    """Those of a gradient are not known: as if all were different, as they are here."""
    indices, values = on_device([[0, 1, 1], [2, 0, 0]]), on_device([1.0, 2.0, 3.0])
    sparse = torch.sparse_coo_tensor(indices, values, (2, 3), check_invariants=False).coalesce()
    rows = nn.Embedding(9, 2, sparse=True).to(DEVICE)
    rows(on_device([1, 2, 5])).sum().backward()
    return sparse._nnz(), rows.weight.grad.coalesce()._nnz()


@program
def gradients_of_what_a_mask_takes():
    """The backward counts the elements of the mask again."""
    weight, labels = nn.Parameter(torch.arange(6.0).to(DEVICE)), on_device([3, -100, 4, -100, -100, 1])
    taken = weight[labels != -100]
    (taken * taken).sum().backward()
    return taken.tolist(), list(weight.grad.shape)


@program
def gradients_that_a_hook_looks_at():
    weight, seen = nn.Parameter(torch.arange(6.0).to(DEVICE)), []
    weight.register_hook(lambda gradient: seen.append(bool(torch.isfinite(gradient).all())))
    (weight * 2).sum().backward()
    return seen


@program
def attention_masks():
    answers = []
    for padding in (slice(0, 0), slice(0, 2), slice(6, 8)):
        mask = torch.ones(2, 8, dtype=torch.long)
        mask[0, padding] = 0
        mask = mask.to(DEVICE)
        answers += [bool(mask.bool().all()), mask.sum(-1).tolist(), (mask.cumsum(-1) - 1).clamp(min=0)[0].tolist(), torch.equal(mask, torch.ones_like(mask))]
    return answers


@program
def lengths_of_packed_sequences():
    lengths = on_device([3, 1, 4])
    offsets = functional.pad(lengths.cumsum(0), (1, 0))
    values = torch.arange(int(offsets[-1]), device=DEVICE)
    return [part.tolist() for part in values.split(lengths.tolist())], lengths.max().item(), torch.repeat_interleave(torch.arange(3, device=DEVICE), lengths).tolist()


@program
def recurrent_network_of_packed_sequences():
    network = nn.GRU(4, 3, batch_first=True).to(DEVICE)
    lengths = on_device([2, 5, 3])
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(3, 5, 4).to(DEVICE), lengths.cpu(), batch_first=True, enforce_sorted=False)
    padded, sizes = nn.utils.rnn.pad_packed_sequence(network(packed)[0], batch_first=True)
    return sizes.tolist(), list(padded.shape), packed.batch_sizes.tolist(), padded.sum().item()


@program
def nested_tensors():
    parts = [torch.arange(2 * n, dtype=torch.float).view(n, 2).to(DEVICE) for n in (1, 3, 2)]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
    offsets = on_device([0, 1, 4, 6])
    again = torch.nested.nested_tensor_from_jagged(torch.cat(parts), offsets)
    return [part.shape[0] for part in nested.unbind()], [part.sum().item() for part in again.unbind()]


@program
def optimizer_with_its_rate_on_the_device():
    model = network(3, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=on_device(0.1), capturable=DEVICE != "cpu")
    losses = []
    for _ in range(3):
        loss = model(torch.ones(2, 3).to(DEVICE)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@program
def early_stopping():
    model, best, patience = network(4, 8, 1), math.inf, 0
    inputs = torch.randn(16, 4).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    for step in range(40):
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        patience = 0 if loss.item() < best else patience + 1
        best = min(best, loss.item())
        if patience == 3 or not math.isfinite(best):
            break
    return step, best


@program
def rate_that_follows_the_loss():
    model = network(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, fused=False, foreach=True)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    rates = []
    for _ in range(6):
        loss = model(torch.ones(1, 2).to(DEVICE)).abs().sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step(loss.detach())
        rates.append(scheduler.get_last_lr()[0])
    return rates


@program
def gradients_that_are_clipped():
    model = network(3, 3)
    model(torch.ones(2, 3).to(DEVICE)).square().sum().backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5, error_if_nonfinite=True)
    return norm.item(), nn.utils.get_total_norm([parameter.grad for parameter in model.parameters()]).item()


@program
def gradients_that_overflow():
    model = network(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=4.0, growth_interval=2)
    scales = []
    for factor in (1.0, math.inf, 1.0, 1.0):
        scaler.scale(model(torch.ones(1, 2).to(DEVICE)).sum() * factor).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        scales.append(scaler.get_scale())
    return scales


@program
def loss_that_looks_at_its_gradient():
    class Loss(torch.autograd.Function):
        asked = []

        @staticmethod
        def forward(context, inputs):
            context.save_for_backward(inputs)
            return inputs.sum()

        @staticmethod
        def backward(context, gradient):
            Loss.asked.append(torch.equal(gradient, torch.tensor(1.0, device=gradient.device)))
            return gradient.expand_as(context.saved_tensors[0])

    inputs = torch.ones(3).to(DEVICE).requires_grad_()
    Loss.apply(inputs).backward()
    (Loss.apply(inputs) * 2).backward()
    return Loss.asked, inputs.grad.tolist()


@program
def curriculum():
    difficulty, epoch = on_device([0.1, 0.7, 0.4, 0.9]), 0
    sizes = []
    while len(sizes) < 3:
        epoch += 1
        chosen = torch.where(difficulty < 0.4 * epoch)[0]
        sizes.append((chosen.numel(), chosen.tolist()))
    return sizes


@program
def experts():
    gate, tokens = nn.Linear(4, 3).to(DEVICE), torch.randn(10, 4).to(DEVICE)
    weights, chosen = gate(tokens).softmax(-1).topk(2)
    counts, output = [], torch.zeros_like(tokens)
    for expert in range(3):
        token, place = torch.where(chosen == expert)
        output.index_add_(0, token, tokens[token] * weights[token, place, None])
        counts.append(token.numel())
    return counts, functional.one_hot(chosen, 3).sum((0, 1)).tolist(), output.sum().item()


@program
def boxes_that_overlap():
    boxes = on_device([[0.0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30], [0, 0, 2, 2]])
    scores = on_device([0.9, 0.8, 0.7, 0.05])
    kept = scores > 0.1
    boxes, scores = boxes[kept], scores[kept]
    try:
        from torchvision.ops import nms
    except ImportError:
        return len(boxes)
    return nms(boxes, scores, 0.5).tolist(), boxes.shape[0]


@program
def distributions():
    rate = on_device([0.5, 2.0])
    normal = torch.distributions.Normal(rate, rate.exp(), validate_args=True)
    multivariate = torch.distributions.MultivariateNormal(torch.zeros(2).to(DEVICE), torch.eye(2).to(DEVICE) * 2)
    return normal.log_prob(rate).sum().item(), multivariate.log_prob(rate).item()


@program
def integration_with_steps_that_adapt():
    time, state, step, times = on_device(0.0), on_device([1.0, 0.5]), on_device(0.3), on_device([0.0, 0.5, 1.0])
    assert (times[1:] > times[:-1]).all(), "times must increase"
    accepted = []
    while time < times[-1]:
        small = state + step * (-state)
        large = state + step / 2 * (-state)
        large = large + step / 2 * (-large)
        error = (small - large).abs().max()
        if error < 0.02:
            time, state = time + step, large
            accepted.append(round(time.item(), 4))
        step = step * (0.9 * (0.02 / error).sqrt()).clamp(0.2, 2.0)
    return accepted, state.tolist()


@program
def labels_that_are_ignored():
    logits, labels = torch.randn(6, 5).to(DEVICE), on_device([1, -100, 3, -100, 0, 2])
    loss = functional.cross_entropy(logits, labels)
    return loss.item(), (labels != -100).sum().item(), logits[labels != -100].shape[0]


@program
def alignment():
    lengths = on_device([4, 3])
    loss = functional.ctc_loss(torch.randn(6, 2, 5).log_softmax(-1).to(DEVICE), on_device([[1, 2, 3, 0], [4, 1, 2, 0]]), torch.tensor([6, 5]), torch.tensor([3, 2]))
    return loss.item(), lengths.tolist()


@program
def masks_that_are_written_to():
    values, mask = torch.arange(8.0).to(DEVICE), on_device([1, 0, 1, 0, 0, 1, 0, 1]).bool()
    values[mask] = -1
    values[~mask] *= 2
    values.masked_fill_(values > 9, 9.0)
    view = values.view(2, 4)
    view[1].zero_()
    view[:, 0] = torch.tensor([5.0, 6.0])
    return values.tolist(), torch.masked_select(values, mask).tolist(), values.nonzero().flatten().tolist()


@program
def counters():
    count, mean = torch.zeros((), dtype=torch.long, device=DEVICE), torch.zeros(2, device=DEVICE)
    for value in range(300):
        count += 1
        mean.lerp_(torch.full((2,), float(value), device=DEVICE), 0.1)
    return count.item(), mean.tolist()


@program
def normalisation():
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()).to(DEVICE)
    for _ in range(2):
        result = model(torch.randn(2, 2, 6, 6).to(DEVICE))
    return result.argmax(-1).tolist(), model[1].num_batches_tracked.item(), model[1].running_mean.tolist()


@program
def attention():
    query = torch.randn(1, 2, 8, 4).to(DEVICE)
    kinds = [functional.scaled_dot_product_attention(query, query, query, is_causal=causal) for causal in (False, True)]
    return [kind.sum().item() for kind in kinds], kinds[1].abs().argmax().item()


@program
def words_one_after_another():
    table = torch.randn(12, 12).to(DEVICE)
    words, steps = on_device([[3], [7]]), 0
    finished = torch.zeros(2, dtype=torch.bool, device=DEVICE)
    while not finished.all() and steps < 20:
        following = table[words[:, -1]].argmax(-1, keepdim=True)
        words, steps = torch.cat([words, following], 1), steps + 1
        finished |= following[:, 0] == 5
    return steps, words.tolist()


@program
def beams():
    table = torch.randn(9, 9).log_softmax(-1).to(DEVICE)
    words, scores = on_device([[2], [2], [2]]), on_device([0.0, -1e9, -1e9])
    for _ in range(5):
        total = (scores[:, None] + table[words[:, -1]]).flatten()
        scores, best = total.topk(3)
        words = torch.cat([words[best // 9], (best % 9)[:, None]], 1)
        if (words[0, -1] == 0).item():
            break
    return words.tolist(), scores.tolist()


@program
def memory_that_moves():
    model, average = network(2, 2), network(2, 2)
    average.load_state_dict(model.state_dict())
    same = all(torch.equal(one, other) for one, other in zip(model.parameters(), average.parameters()))
    with torch.no_grad():
        for one, other in zip(model.parameters(), average.parameters()):
            one.add_(1)
            other.mul_(0.9).add_(one, alpha=0.1)
    return same, [parameter.sum().item() for parameter in average.parameters()]


@program
def optimizer_that_searches():
    target = on_device([1.0, -2.0])
    place = torch.zeros(2, device=DEVICE, requires_grad=True)
    optimizer = torch.optim.LBFGS([place], line_search_fn="strong_wolfe", max_iter=10)

    def closure():
        optimizer.zero_grad()
        loss = ((place - target) ** 2 * torch.tensor([1.0, 3.0], device=DEVICE)).sum()
        loss.backward()
        return loss

    first = optimizer.step(closure).item()
    return first, place.tolist()


@program
def what_is_computed_again():
    from torch.utils.checkpoint import checkpoint
    model = network(3, 3, 3)
    inputs = torch.ones(2, 3).to(DEVICE).requires_grad_()
    checkpoint(model, inputs, use_reentrant=False).sum().backward()
    return inputs.grad.sum().item(), inputs.grad.abs().max().item() > 0


@program
def buckets():
    edges, values = on_device([0.0, 1.0, 2.0]), on_device([0.5, 1.5, 1.7, 3.0])
    places = torch.bucketize(values, edges)
    return places.tolist(), torch.searchsorted(edges, values).max().item(), torch.histc(values, 3, 0, 3).tolist(), values.sort(descending=True)[1].tolist()


@program
def operators_that_read_before_they_choose():
    matrix = on_device([[2.0, 1.0], [1.0, 3.0]])
    found = torch.isin(torch.arange(4.0, device=DEVICE), on_device([1.0, 3.0] * 20))
    sums = torch.segment_reduce(torch.ones(5, device=DEVICE), "sum", lengths=on_device([2, 3]))
    drawn = torch.normal(torch.zeros(3, device=DEVICE), on_device([1.0, 2.0, 0.0]))  # std is looked at: none is below 0
    return found.tolist(), sums.tolist(), tuple(drawn.shape), torch.matrix_exp(matrix)[0, 0].item(), tuple(torch.linalg.eig(matrix)[0].shape)


@program
def numbers_and_tensors_of_the_host():
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(context, inputs):
            return torch.add(inputs, 1) * 2

        @staticmethod
        def backward(context, gradient):
            return gradient * 2

    host = torch.arange(3.0)
    return (host + 1).tolist(), (2 - host).sum().item(), Doubled.apply(host.clone().requires_grad_()).tolist(), (1 / on_device([1.0, 4.0])).tolist()


@program
def a_checkpoint_that_is_loaded_to_the_device():
    parameters = [torch.nn.Parameter(torch.ones(8, 8, device=DEVICE)) for _ in range(300)]
    optimizer = torch.optim.AdamW(parameters)

    def step():
        sum(parameter.sum() for parameter in parameters).backward()
        optimizer.step()
        return [optimizer.state[parameter]["step"].item() for parameter in parameters]

    first, content = step(), io.BytesIO()
    torch.save({"optimizer": optimizer.state_dict(), "large": [torch.ones(1 << 20) for _ in range(40)]}, content)
    content.seek(0)
    optimizer.load_state_dict(torch.load(content, map_location=DEVICE)["optimizer"])  # the counts of steps are on the device now
    return first, step(), step()


@program
def what_is_printed():
    return str(torch.arange(3, device=DEVICE).cpu()), repr(on_device([1, 2]).tolist()), f"{on_device(2.5):.2f}", int(on_device(7)), float(on_device(1.5))


def main():
    for one in PROGRAMS:
        torch.manual_seed(0)
        try:
            result = one()
        except Exception as error:  # noqa: BLE001 - how it ends is compared
            result = f"{type(error).__name__}: {error}"
        print(one.__name__, result, sep="\t", flush=True)


main()
