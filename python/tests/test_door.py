"""Modules that an export loses something of, and that a capture does not. What they cost is what a run of the same step costs (tests/python)."""

import copy
import random

import pytest

import metaprof

torch = pytest.importorskip("torch", reason="PyTorch is not here")
F = torch.nn.functional


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return gradient * (s * (1 + x * (1 - s)))


swish = Swish.apply  # as programs hold it: under a name of their own


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(swish(self.up(x)))


class Net(torch.nn.Module):
    def __init__(self, checkpoint, blocks=4):
        super().__init__()
        self.blocks, self.checkpoint = torch.nn.ModuleList(Block(64) for _ in range(blocks)), checkpoint

    def forward(self, x):
        for block in self.blocks:
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) if self.checkpoint else block(x)
        return x.mean()


X = torch.zeros(64, 50, 64)


def test_a_checkpoint_saves_what_it_saves():
    plain, checkpointed = (metaprof.profile(Net(flag), (X,)) for flag in (False, True))
    assert checkpointed.saved_bytes < plain.saved_bytes / 4
    assert checkpointed.flops["recompute"] > 0 and plain.flops["recompute"] == 0


def test_a_custom_function_keeps_what_it_saves():
    class Plain(Block):
        def forward(self, x):
            y = self.up(x)
            return x + self.down(y * torch.sigmoid(y))  # autograd keeps y, its sigmoid, and the product for `down`

    custom, plain = (metaprof.profile(torch.nn.Sequential(kind(64)), (X, X)).saved_bytes for kind in (Block, Plain))
    assert plain - custom == 64 * 50 * 256 * 4


def test_a_branch_on_dtype_is_taken_as_under_autocast():
    class Adapter(torch.nn.Linear):
        def forward(self, x):
            if x.dtype != self.weight.dtype:
                x = x.to(self.weight.dtype)
            return super().forward(x)

    def taken(second):
        result = metaprof.profile(torch.nn.Sequential(torch.nn.Linear(64, 64), second), (X, X), precision="amp-bf16")
        return {module.path: module.forward_tmp for module in result.modules}["1"]

    assert taken(Adapter(64, 64)) - taken(torch.nn.Linear(64, 64)) >= 4 * X.numel()  # the copy of 32 bits


def test_numbers_that_are_known_are_read_and_others_are_refused_by_line():
    class Masked(torch.nn.Linear):
        def forward(self, x, mask):
            return super().forward(x).sum() if mask.all() else super().forward(x).sum() + super().forward(x * mask).sum()

    class Normed(torch.nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            return y.sum() / y.mean().item()

    ones = torch.ones(64, 1)
    known, other = (metaprof.profile(Masked(4, 4), (torch.zeros(64, 4), mask)).flops["forward"] for mask in (ones, 0 * ones))
    assert other == 2 * known
    assert metaprof.profile(Normed(4, 4), (torch.zeros(64, 4),)).parameters == 20
    with pytest.raises(metaprof.Error, match=r"test_door.py:\d+: aten._local_scalar_dense.default reads data of the device"):
        metaprof.profile(Masked(4, 4), (torch.zeros(64, 4), ones.to("meta")))


def test_the_module_is_as_it_was():
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.norm, self.calls, self.seen = torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), 0, []
            self.rnn = torch.nn.LSTM(8, 8, batch_first=True)
            self.register_buffer("queue", torch.randn(16, 8))
            self.register_buffer("at", torch.zeros(1, dtype=torch.long))
            self.body.weight.register_hook(lambda gradient: gradient)

        def forward(self, x):
            self.calls += 1
            self.seen.append(x)
            y = self.norm(self.body(x) + torch.rand((), device="cpu"))
            at = int(self.at)
            self.queue[at:at + len(y)] = y.detach()
            self.at[0] = (at + len(y)) % 16
            return self.rnn(y[None])[0].sum()

    model = Counting().eval()
    model.body.bias.requires_grad_(False)
    model.body.weight.grad = torch.ones(8, 8)
    x = torch.randn(4, 8)
    state, tensors, random_state = copy.deepcopy(model.state_dict()), {**dict(model.named_parameters()), **dict(model.named_buffers())}, torch.get_rng_state()
    attributes, python = {name: dict(vars(each)) for name, each in model.named_modules()}, random.getstate()
    metaprof.profile(model, (x,))
    assert all(torch.equal(state[name], tensor) for name, tensor in model.state_dict().items())
    assert all(tensors[name] is tensor for name, tensor in [*model.named_parameters(), *model.named_buffers()])
    assert {name: set(vars(each)) for name, each in model.named_modules()} == {name: set(each) for name, each in attributes.items()}
    assert model.calls == 0 and model.seen == [] and not model.training and not model.body.bias.requires_grad
    assert torch.equal(model.body.weight.grad, torch.ones(8, 8))
    assert torch.equal(torch.get_rng_state(), random_state) and random.getstate() == python
    assert model.rnn._flat_weights[0] is model.rnn.weight_ih_l0
    model(torch.zeros(4, 8)).backward()  # it runs as before


def test_torch_is_as_it_was():
    def functions():
        return {(owner, name): vars(owner).get(name) for owner, name in (
            (torch.Tensor, "data"), (torch.Tensor, "grad"), (torch.Tensor, "dtype"), (torch.nn.Module, "_apply"), (torch.cuda, "is_available"),
            (torch.autograd.graph, "_engine_run_backward"), (torch.autograd.Function, "apply"), (torch._subclasses, "FakeTensor"),
            (torch.utils.checkpoint, "_checkpoint_without_reentrant_generator"), (torch.ops.aten.linear.default.__class__, "_get_dispatch"))}

    before = functions()
    metaprof.profile(Net(True, 1), (X,))
    with pytest.raises(metaprof.Error, match="cannot be called"):
        metaprof.profile(Net(True, 1), (torch.zeros(2, 3),))
    assert functions() == before
    assert len(torch.nn.modules.module._global_forward_hooks) == 0


def test_the_loss_of_classes_that_come_second():
    model = torch.nn.Conv2d(3, 6, 1)
    images, labels = torch.zeros(2, 3, 8, 8), torch.zeros(2, 8, 8, dtype=torch.long)
    usual = metaprof.profile(model, (images, labels))
    assert usual.peak == metaprof.profile(model, (images, labels), loss=F.cross_entropy).peak
    metaprof.profile(model, (images,), loss=lambda output: output.mean())  # of the output alone


def test_the_first_error_is_shown():
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Linear(4, 4)

        def forward(self, x, tokens):
            raise ValueError("tokens are wrong")

    with pytest.raises(metaprof.Error, match="tokens are wrong"):
        metaprof.profile(Two(), (torch.zeros(2, 4), torch.zeros(2, 4)))


def test_an_optimizer_that_is_given_is_followed():
    model = Net(False, 1)
    by_name = metaprof.profile(model, (X,), optimizer="adamw")
    for chosen, name in ((torch.optim.AdamW(model.parameters()), "adamw"), (torch.optim.SGD(model.parameters(), lr=0.1), "sgd")):
        assert metaprof.profile(model, (X,), optimizer=chosen).phases == metaprof.profile(model, (X,), optimizer=name).phases
        assert chosen.param_groups[0]["params"][0] is next(model.parameters()) and not chosen.state
    half = torch.optim.AdamW(model.blocks[0].up.parameters())
    state = metaprof.estimate_memory(model, (X,), half).optimizer_mb
    assert state == 2 * 4 * sum(each.numel() for each in model.blocks[0].up.parameters()) / 2**20
    assert metaprof.profile(model, (X,), optimizer="none").phases != by_name.phases
    with pytest.raises(metaprof.Error, match="none of the module's"):
        metaprof.profile(model, (X,), optimizer=torch.optim.AdamW(torch.nn.Linear(2, 2).parameters()))


def test_the_names_of_the_estimate():
    model = Net(False)
    result = metaprof.estimate_memory(model, (X,), "adamw", device="rtx4090")
    assert result.params_mb == 4 * sum(each.numel() for each in model.parameters()) / 2**20
    assert result.optimizer_mb == 2 * result.params_mb
    assert result.activations_mb > 64 * 50 * 256 * 4 * 4 / 2**20 and result.total_mb > result.peak.reserved / 2**20
    assert result.fits and result.fits("t4") and bool(result.fits) is True
    assert not metaprof.estimate_memory(model, (X,), memory="1MiB", context="none").fits
    assert repr(result).startswith("FITS rtx4090: needs ")


def test_modes_and_hooks_are_followed():
    model = Net(False)
    train = metaprof.profile(model, (X,))
    assert metaprof.profile(model, (X,), mode="inference").peak.allocated < train.peak.allocated
    assert [phase["phase"] for phase in metaprof.profile(model, (X,), mode="no-grad", steps=2).phases] == ["setup", "forward", "forward"]
    assert metaprof.profile(model, (X,), hooks="offload-pinned").peak.allocated < train.peak.allocated
    with pytest.raises(metaprof.Error, match="mode='trian': of a module it is one of train"):
        metaprof.profile(model, (X,), mode="trian")
    with pytest.raises(metaprof.Error, match="lora: of a module"):
        metaprof.profile(model, (X,), lora="r=4")


def test_other_sizes_are_captured_at_those_sizes():
    model = torch.nn.Sequential(torch.nn.Embedding(50, 8), torch.nn.Linear(8, 50))
    ids = torch.zeros(2, 5, dtype=torch.long)
    for options, sizes in (({"batch": 4}, (4, 5)), ({"sequence": 9}, (2, 9)), ({"set": {"input": (3, 7), "target": (3, 7)}}, (3, 7))):
        other = torch.zeros(sizes, dtype=torch.long)
        assert metaprof.profile(model, (ids, ids), **options).phases == metaprof.profile(model, (other, other)).phases
    with pytest.raises(metaprof.Error, match="there is no input tensor 'mask'; there are: input, target"):
        metaprof.profile(model, (ids, ids), set={"mask": (2, 5)})
    with pytest.raises(metaprof.Error, match="batch=0"):
        metaprof.profile(model, (ids, ids), batch=0)


def test_threads_capture_one_after_the_other():
    from concurrent.futures import ThreadPoolExecutor

    models = [Net(flag, 1) for flag in (False, True)] * 4
    with ThreadPoolExecutor(8) as pool:
        peaks = [result.peak.allocated for result in pool.map(lambda model: metaprof.profile(model, (X,)), models)]
    assert peaks == [metaprof.profile(model, (X,)).peak.allocated for model in models[:2]] * 4


def test_an_export_that_would_lose_something_is_refused(tmp_path):
    class Checkpointed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Linear(64, 64)

        def forward(self, x):
            return torch.utils.checkpoint.checkpoint(self.body, x, use_reentrant=False).mean()

    with pytest.raises(metaprof.Error, match="no region of torch.utils.checkpoint, and Linear"):
        metaprof.export(Checkpointed(), (X,), str(tmp_path / "c.pt2"))
    with pytest.raises(metaprof.Error, match="no backward of a function's own, and test_door.Swish"):
        metaprof.export(Net(False), (X,), str(tmp_path / "f.pt2"))
    assert "apply" not in vars(torch.autograd.function._SingleLevelFunction)


class Holds:
    net = torch.nn.Linear(64, 64)


class Slotted:
    __slots__ = ("net",)

    def __init__(self, net):
        self.net = net


NET = torch.nn.Linear(64, 64)
TABLE, SLOTTED, FORWARD = {"nets": [NET]}, Slotted(NET), NET.forward


def in_defaults(x, net=NET, *, other=NET):
    net(x).mean().backward()


def in_a_table(x):
    TABLE["nets"][0](x).mean().backward()


def in_a_class(x):
    Holds.net(x).mean().backward()


def in_slots(x):
    SLOTTED.net(x).mean().backward()


def of_a_method(x):
    FORWARD(x).mean().backward()


def in_a_lambda(x):
    (lambda y: NET(y))(x).mean().backward()


def test_a_function_reaches_the_modules_that_it_uses():
    def plainly(x):
        NET(x).mean().backward()

    expected = metaprof.profile(plainly, (X,)).peak.allocated
    for function in (in_defaults, in_a_table, in_a_class, in_slots, of_a_method, in_a_lambda):
        assert metaprof.profile(function, (X,)).peak.allocated == expected, function


class TwoModels:
    other = torch.nn.Linear(4096, 4096)

    def one_step(self, x):
        self.loss(x).backward()

    def loss(self, x):
        return NET(x).mean()

    def other_step(self, x):
        self.other(x).mean().backward()


def test_a_method_reaches_what_it_uses_and_not_what_other_methods_use():
    def plainly(x):
        NET(x).mean().backward()

    assert metaprof.profile(TwoModels().one_step, (X,)).peak.allocated == metaprof.profile(plainly, (X,)).peak.allocated


def test_an_export_has_the_variables_of_functions_that_forward_calls(tmp_path):
    class Mixed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up = torch.nn.Linear(64, 512)

        def mix(self, x):
            low = self.up(x).sign()  # backward needs neither, so the function's variables alone keep them
            high = low.ceil()
            return self.up(x) * high

        def forward(self, x):
            return self.mix(x).mean()

    def forward_peak(model, *args):
        phases = metaprof.profile(model, *args, optimizer="sgd", steps=1).json["phases"]
        return next(phase["allocated_bytes"]["peak"] for phase in phases if phase["phase"] == "forward")

    named, plain = str(tmp_path / "named.pt2"), str(tmp_path / "plain.pt2")
    metaprof.export(Mixed(), (X,), named)
    torch.export.save(torch.export.export(Mixed(), (X,), strict=False), plain)
    assert forward_peak(named) == forward_peak(Mixed(), (X,))
    assert forward_peak(plain) < forward_peak(named)


def test_an_export_says_which_parameters_are_one(tmp_path):
    class Shared(torch.nn.Module):
        def __init__(self):
            super().__init__()
            scale = torch.nn.LayerNorm(64)
            self.blocks = torch.nn.ModuleList(torch.nn.ModuleList([scale, torch.nn.Linear(64, 64), scale]) for _ in range(2))

        def forward(self, x):
            for first, linear, last in self.blocks:
                x = last(linear(first(x)))
            return x.mean()

    file = str(tmp_path / "shared.pt2")
    metaprof.export(Shared(), (X,), file)
    found, captured = (metaprof.profile(model, *args).json["parameters"] for model, *args in ((file,), (Shared(), (X,))))
    assert found["count"] == captured["count"]
    assert found["tied"] == [[f"blocks.{block}.{place}.{name}" for block in (0, 1) for place in (0, 2)] for name in ("weight", "bias")]


def test_the_answer_of_fit_is_captured_again():
    from metaprof._fit import largest

    for size in (0, 1, 2, 7, 100):
        for guess in (None, 1, size - 1, size, size + 1, 3 * size, 50):
            assert largest(lambda asked: asked <= size, guess)[0] == size
    options = {"device": "t4", "memory": "200MiB", "context": "none"}
    row, = metaprof.fit(Net(True), (X,), **options).rows
    assert row["agree"] is True and row["captures"] == 2
    assert metaprof.profile(Net(True), (X,), batch=row["largest"], **options).fits
    assert not metaprof.profile(Net(True), (X,), batch=row["largest"] + 1, **options).fits


def test_a_number_of_the_host_that_does_not_follow_the_batch_is_captured_at_each_size():
    class Queue(torch.nn.Linear):
        def forward(self, x):
            y = super().forward(x)
            return torch.cat([y, torch.zeros(int(x.new_tensor(len(x)).item()), 1, device=x.device)], 1).sum()

    options = {"memory": "120MiB", "context": "none"}
    row, = metaprof.fit(Queue(64, 64), (torch.zeros(16, 64),), **options).rows
    assert metaprof.profile(Queue(64, 64), (torch.zeros(16, 64),), batch=row["largest"], **options).fits
    assert not metaprof.profile(Queue(64, 64), (torch.zeros(16, 64),), batch=row["largest"] + 1, **options).fits


def test_a_size_with_which_the_module_cannot_be_called_is_a_limit():
    class Fixed(torch.nn.Linear):
        def forward(self, x):
            ones = torch.zeros(int(x.new_tensor(len(x)).item()), 1, device=x.device)
            return (super().forward(x) + ones + x.new_zeros(100, 1)[:len(x)]).sum()

    row, = metaprof.fit(Fixed(64, 64), (torch.zeros(16, 64),)).rows
    assert row["largest"] == 100 and "cannot be called" in row["limit"]


def test_a_function_that_trains_is_a_model():
    model = Net(True, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    loss = None

    def step(x):
        nonlocal loss
        loss = model(x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    weight = model.blocks[0].up.weight
    phases = metaprof.profile(step, (X,)).phases
    loss = None
    assert weight is model.blocks[0].up.weight and weight.device.type == "cpu" and weight.grad is None and not optimizer.state
    assert phases == metaprof.profile(model, (X,), optimizer=optimizer).phases
    assert metaprof.profile(step, (X,), batch=8).peak.allocated < metaprof.profile(step, (X,)).peak.allocated
    assert metaprof.profile(step, (X,), optimizer="sgd").phases == metaprof.profile(model, (X,), optimizer="sgd").phases


def test_a_step_has_what_it_computes_wherever_gradients_are_freed():
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def first(x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    def between(x):
        loss = model(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def twice(x):
        loss = model(x).sum() + model(x.flip(0)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    one, other, double = (metaprof.profile(function, (X,)) for function in (first, between, twice))
    assert one.saved_bytes == other.saved_bytes > 0
    assert one.flops == other.flops
    assert [double.flops[phase] for phase in ("forward", "backward")] == [2 * one.flops[phase] for phase in ("forward", "backward")]
    assert [phase["phase"] for phase in double.phases if phase.get("step") == 0] == ["forward", "zero_grad", "backward", "optimizer"]


def test_hooks_on_gradients_are_called():
    class Hooked(torch.nn.Module):
        def __init__(self, hooked):
            super().__init__()
            self.body, self.head, self.hooked = torch.nn.Linear(64, 64), torch.nn.Linear(64, 64), hooked

        def forward(self, x):
            y = self.body(x)
            if self.hooked:
                y.register_hook(lambda gradient: torch.cat([gradient] * 8)[:len(gradient)])
            return self.head(y).sum()

    plain, hooked = (metaprof.profile(Hooked(flag), (X,)) for flag in (False, True))
    assert hooked.peak.allocated - plain.peak.allocated > 4 * X.numel() * 4
    model = Hooked(False)
    model.head.weight.register_hook(lambda gradient: torch.cat([gradient] * 2000)[:64])
    assert metaprof.profile(model, (X,)).peak.allocated > plain.peak.allocated + 1000 * 64 * 64 * 4
    model = Hooked(False)
    model.head.weight.register_post_accumulate_grad_hook(lambda parameter: None)
    with pytest.raises(metaprof.Error, match="hooks that run when its gradient has grown"):
        metaprof.profile(model, (X,))


def test_commands_take_modules():
    model = torch.nn.Sequential(*(Block(64) for _ in range(4)), torch.nn.Flatten(0))
    args, options = (X, X.flatten()), {"device": "t4", "context": "none"}
    peak = metaprof.profile(model, args, **options).peak
    advice = metaprof.advise(model, args, memory=peak.reserved // 2, **options)
    assert advice.json["base"]["peak"] == peak.allocated and advice.json["rows"]
    assert repr(advice).startswith(("FITS", "DOES NOT FIT"))
    plan = metaprof.plan(model, args, budget="90%", **options)
    assert plan.json["schema"] == "metaprof.plan" and "budget" in repr(plan)
    assert metaprof.cudagraphs(model, args, optimizer="sgd", **options).json["schema"] == "metaprof.cudagraphs"
    with pytest.raises(metaprof.Error, match="'some' is not a size"):
        metaprof.plan(model, args, budget="some", **options)


class Frozen(dict):
    """As diffusers has its configurations."""

    def update(self, *arguments, **named):
        raise TypeError("it cannot be changed")

    clear = __setitem__ = update


def test_containers_that_refuse_changes():
    class Net(torch.nn.Linear):
        def __init__(self):
            super().__init__(4, 3)
            self.settings = Frozen(act="relu", sizes=Frozen(width=4))
            self.seen = []

        def forward(self, x):
            self.seen.append(x.shape)
            return super().forward(x).sum()

    model = Net()
    weight = model.weight
    assert metaprof.profile(model, (torch.zeros(2, 4),)).parameters == 15
    assert model.weight is weight and model.seen == [] and model.settings["sizes"] == {"width": 4}


class Reads(torch.nn.Linear):
    """Its way depends on a number that follows from its weights."""

    def forward(self, x):
        y = super().forward(x)
        return y.flatten()[torch.nonzero(y.flatten() > 0)].sum() + (y.sum() if self.weight.abs().max().item() < 5 else x.exp().sum())


def test_what_follows_from_weights_on_the_host_is_read(tmp_path):
    from metaprof._steps import write_program

    torch.manual_seed(0)
    model, x = Reads(4, 3), torch.randn(8, 4)
    positive = int((F.linear(x, model.weight, model.bias) > 0).sum())
    with open(write_program(model, (x,), str(tmp_path / "reads.mp"), options={"device": "h200", "steps": 1})) as file:
        program = file.read()
    assert f"i64[{positive},1]" in program and "aten::exp(" not in program
    with torch.device("meta"):
        without = Reads(4, 3)
    with pytest.raises(metaprof.Error, match="reads data of the device that nothing tells"):
        metaprof.profile(without, (x,))


class Named(torch.nn.Module):
    """Takes its input by name, and has weights of as many rows as the batch."""

    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(512, 512), torch.nn.Linear(512, 2)

    def forward(self, x=None):
        return self.down(self.up(x).exp()).sum()


def test_what_an_optimizer_keeps_is_no_input():
    model = Named()
    optimizer = torch.optim.Adagrad(model.parameters())  # its state is made with it
    found = metaprof.fit(model, kwargs={"x": torch.zeros(2, 512)}, optimizer=optimizer, device="t4", memory="64MiB", context="none")
    assert found.rows[0]["agree"] and not found.rows[0]["unbounded"] and 1000 < found.largest < 20000


class Halves(torch.nn.Linear):
    """Its sizes follow from half of the batch, which a change of sizes does not find."""

    def forward(self, x):
        return super().forward(x).view(len(x) // 2, 2 * 512).exp().sum()


def test_a_report_of_captures_alone_can_be_written(tmp_path):
    model = Halves(512, 512)
    found = metaprof.fit(model, (torch.zeros(4, 512),), optimizer=torch.optim.Adagrad(model.parameters()), device="t4", memory="64MiB", context="none")
    assert found.largest == 4 and "cannot be called" in found.rows[0]["limit"]  # the next size is odd
    assert found.rows[0]["options"]["optimizer"] == "Adagrad" and found.write(str(tmp_path / "fit.json"))
