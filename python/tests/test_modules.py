"""Modules: their forward is captured in this process, on a device that is not there."""

import itertools
import threading

import pytest

import metaprof

torch = pytest.importorskip("torch", reason="PyTorch is not here")


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(50, 8)
        self.head = torch.nn.Linear(8, 50, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.embed(ids))


def test_a_module_with_integer_targets_gets_cross_entropy():
    ids = torch.zeros(2, 5, dtype=torch.long)
    result = metaprof.profile(Tied(), (ids, ids), device="rtx4090")
    assert result.parameters == 50 * 8
    # 2 · 10 · 8 · 50 forward, twice that backward
    assert result.flops["forward"] == 2 * 10 * 8 * 50
    assert result.flops["backward"] == 2 * 2 * 10 * 8 * 50


def test_floating_targets_get_the_squared_error():
    model = torch.nn.Linear(4, 3)
    result = metaprof.profile(model, (torch.zeros(2, 4), torch.zeros(2, 3)))
    assert result.parameters == 15


def test_a_loss_of_its_own():
    class WithLoss(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x).sum()

    assert metaprof.profile(WithLoss(4, 3), (torch.zeros(2, 4),)).parameters == 15


def test_modules_and_inputs_have_the_names_that_the_user_knows():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 3))

        def forward(self, x, mask=None):
            return self.body(x)

    result = metaprof.profile(Net(), (torch.zeros(2, 4), torch.zeros(2, 3)), checkpoint="body", set={"x": (5, 4), "target": (5, 3)})
    assert [(row.path, row.type.split(".")[-1]) for row in result.modules[:3]] == [
        ("", "Net"), ("body", "Sequential"), ("body.0", "Linear")]
    # Recomputation stops when the last saved tensor is there again, the second layer's input.
    assert result.flops["recompute"] == 2 * 5 * 4 * 6


def test_arguments_by_name():
    class Output(dict):
        __getattr__ = dict.get

    class Net(Tied):
        def forward(self, ids, labels=None):
            logits = super().forward(ids)
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten())
            return Output(loss=loss, logits=logits)

    ids = torch.zeros(2, 5, dtype=torch.long)
    named = metaprof.profile(Net(), {"ids": ids, "labels": ids})
    assert named.flops["forward"] == 2 * 10 * 8 * 50
    assert named.peak == metaprof.profile(Net(), kwargs={"ids": ids, "labels": ids}).peak


def test_a_loss_that_is_given():
    model = torch.nn.Linear(4, 3)
    result = metaprof.profile(model, (torch.zeros(2, 4), torch.zeros(2, 3)), loss=lambda out, target: (out - target).abs().sum())
    assert "aten.abs.default" in result.json["flops_all"]["by_op"] or "aten.abs" in result.json["flops_all"]["by_op"]


def test_a_model_on_meta_and_one_that_uses_its_second_argument_for_something_else():
    class Masked(torch.nn.Linear):
        def forward(self, x, mask=None):
            return super().forward(x if mask is None else x.masked_fill(mask, 0))  # refuses targets, which are no mask

    with torch.device("meta"):
        model = Masked(4, 3)
    assert metaprof.profile(model, (torch.zeros(2, 4), torch.zeros(2, dtype=torch.long))).parameters == 15


def test_the_module_that_does_not_fit_is_named():
    args = (torch.zeros(2, 4), torch.zeros(2, 3))
    assert metaprof.assert_fits(torch.nn.Linear(4, 3), args, device="t4").fits
    with pytest.raises(AssertionError, match="Linear: DOES NOT FIT t4: needs .*; the peak is in setup"):
        metaprof.assert_fits(torch.nn.Linear(4, 3), args, device="t4", memory="1MiB", context="none")


def test_the_model_is_left_as_it_was():
    model = torch.nn.Linear(4, 3)
    before = model.weight
    metaprof.profile(model, (torch.zeros(2, 4), torch.zeros(2, 3)))
    assert model.weight is before and model.weight.device.type == "cpu" and type(model) is torch.nn.Linear


def test_flex_attention_of_an_export_is_taken_to_be_compiled(tmp_path):
    flex = pytest.importorskip("torch.nn.attention.flex_attention")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = torch.nn.Linear(64, 3 * 64)
            self.bias = torch.nn.Parameter(torch.zeros(4))
            self.mask = flex.create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256, device="cpu")

        def forward(self, x):
            q, k, v = (each.view(2, 256, 4, 16).transpose(1, 2) for each in self.qkv(x).chunk(3, dim=-1))
            masked = flex.flex_attention(q, k, v, block_mask=self.mask)
            return (masked + flex.flex_attention(q, k, v, score_mod=lambda s, b, h, m, n: s + self.bias[h])).sum()

    result = metaprof.profile(metaprof.export(Net(), (torch.zeros(2, 256, 64),), str(tmp_path / "net.pt2")))
    assert result.parameters == 64 * 192 + 192 + 4
    # Two calls of two products: 2 · 2 · 4 · 256 · 256 · 16 each
    assert result.json["flops_all"]["by_op"]["metaprof.flex_attention"]["forward"] == 2 * 2 * 2 * 2 * 4 * 256 * 256 * 16
    assert not result.json["unmodelled"]


class Copied(torch.nn.Module):
    """On a GPU, its attention's result has other strides than on meta tensors."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(8, 8)

    def forward(self, x):
        q = self.body(x).view(2, 5, 2, 4).permute(0, 2, 1, 3)
        y = torch.nn.functional.scaled_dot_product_attention(q, q, q)
        return y.contiguous().sum()


def test_every_call_of_contiguous_is_exported(tmp_path):
    plain = torch.Tensor.contiguous
    path = metaprof.export(Copied(), (torch.zeros(2, 5, 8),), str(tmp_path / "copied.pt2"))
    assert torch.Tensor.contiguous is plain
    calls = [node for node in torch.export.load(path).graph.nodes if str(node.target) == "aten.contiguous.default"]
    assert len(calls) == 1


def test_stack_traces_hold_the_forwards_of_modules_alone(tmp_path):
    path = metaprof.export(Copied(), (torch.zeros(2, 5, 8),), str(tmp_path / "copied.pt2"))
    traces = [node.meta.get("stack_trace") or "" for node in torch.export.load(path).graph.nodes]
    assert any("in forward" in trace for trace in traces)
    assert not any("_export.py" in trace for trace in traces)


def test_a_model_that_cannot_be_exported_says_why(tmp_path):
    class Data(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x).sum() if x.sum().item() > 0 else x.sum()

    with pytest.raises(metaprof.Error, match="the model cannot be (exported|called)"):
        metaprof.export(Data(4, 3), (torch.zeros(2, 4),), str(tmp_path / "data.pt2"))


@pytest.mark.parametrize("cell, kept", [(torch.nn.GRUCell, 5), (torch.nn.LSTMCell, 4)])
def test_a_single_cell_of_a_recurrent_layer_keeps_what_its_kernel_keeps(cell, kept):
    class Steps(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = cell(32, 32)

        def forward(self, x):
            out = self.cell(x)
            return (out[0] if isinstance(out, tuple) else out).sum()

    report = metaprof.profile(Steps(), (torch.zeros(64, 32),), device="t4").json
    module, = (each for each in report["modules"] if each["path"] == "cell")
    assert module["saved_bytes"] >= kept * 64 * 32 * 4  # the kernel's workspace; the rest is inputs and states


def test_no_loss_is_an_error():
    with pytest.raises(metaprof.Error, match="no scalar loss"):
        metaprof.profile(torch.nn.Linear(4, 3), (torch.zeros(2, 4),))
    with pytest.raises(metaprof.Error, match="example arguments"):
        metaprof.profile(torch.nn.Linear(4, 3))
    with pytest.raises(metaprof.Error, match="cannot be called with these arguments: ."):
        metaprof.profile(torch.nn.Linear(4, 3), (torch.zeros(2, 5),))
    with pytest.raises(metaprof.Error, match="an nn.Module, a function that trains, or a path, not int"):
        metaprof.profile(3, (torch.zeros(2, 5),))


class Scaled(torch.nn.Linear):
    """Reads a number of its activations: as a factor, or in order to decide."""

    def __init__(self, decides):
        super().__init__(64, 64)
        self.decides = decides

    def forward(self, x):
        y = super().forward(x)
        largest = y.abs().max().item()
        if self.decides and largest > 1:
            y = torch.cat([y] * self.decides)
        return (y / largest).sum()


def test_a_number_that_nothing_tells_may_be_any():
    result = metaprof.profile(Scaled(0), (torch.empty(32, 64, device="meta"),))
    assert result.warnings[-1] == "with large numbers in their place, the steps make the same calls"
    assert "reads data of the device that nothing tells, taken to be " in result.warnings[0]
    assert "test_modules.py" in result.warnings[0] and repr(result).endswith("warning: " + result.warnings[-1])


def test_a_number_that_decides_little_is_said_to():
    class Little(Scaled):
        def forward(self, x):
            y = torch.nn.Linear.forward(self, x)
            return y.sum() + (torch.zeros(1, device=y.device) if y.max().item() > 1 else 0)

    result = metaprof.profile(Little(0), (torch.empty(16384, 64, device="meta"),))
    assert result.warnings[-1].startswith("with large numbers in their place, peaks and FLOPs change by up to 0.0")


def test_a_number_that_decides_is_refused():
    with pytest.raises(metaprof.Error, match="reads data of the device that nothing tells without running the program"):
        metaprof.profile(Scaled(4), (torch.empty(32, 64, device="meta"),))


def training():
    """Losses of a small model on the host, a step each."""
    numbers = torch.Generator().manual_seed(1)
    model = torch.nn.Linear(8, 8, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.randn(8, 8, generator=numbers))
    optimizer, x = torch.optim.AdamW(model.parameters()), torch.randn(16, 8, generator=numbers)
    while True:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        yield loss.item()


def step_of(model):
    optimizer = torch.optim.AdamW(model.parameters())

    def step(x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    return step


def test_eight_threads_at_once_beside_one_that_trains():
    x = torch.empty(4, 16, 64)
    models = [torch.nn.TransformerEncoderLayer(64, heads, batch_first=True) for heads in (1, 2, 4, 8)]
    jobs = [(model, {"loss": lambda output: output.sum()}) for model in models] + [(step_of(model), {}) for model in models]

    def phases(job):
        return [(phase["phase"], phase["allocated_bytes"], phase["reserved_bytes"]) for phase in metaprof.profile(job[0], (x,), **job[1]).json["phases"]]

    alone, together, stop, losses = [phases(job) for job in jobs], {}, threading.Event(), []
    trains = threading.Thread(target=lambda: losses.extend(itertools.takewhile(lambda _: not stop.is_set(), training())))
    threads = [threading.Thread(target=lambda i=i: together.update({i: phases(jobs[i])})) for i in range(len(jobs))]
    for thread in (trains, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    trains.join()
    assert [together.get(i) for i in range(len(jobs))] == alone
    assert losses and losses == list(itertools.islice(training(), len(losses)))


def test_factories_have_the_dtype_that_the_program_has_set(tmp_path):
    from metaprof import _steps

    class Shifted(torch.nn.Linear):
        def forward(self, x):
            return (super().forward(x) + torch.zeros(64, device=x.device)).sum()

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        text = open(_steps.write_program(Shifted(64, 64), (torch.zeros(8, 64),), str(tmp_path / "step.mp"))).read()
    finally:
        torch.set_default_dtype(before)
    assert [line.rpartition(" at ")[0] for line in text.splitlines() if "aten::zeros(" in line][0].endswith("dtype=bf16) in m1")


def test_gradients_that_need_scaling_are_refused_with_another_way():
    with pytest.raises(metaprof.Error, match="precision='amp-fp16': its gradients are scaled, .* metaprof.run follows a program with a GradScaler"):
        metaprof.profile(torch.nn.Linear(4, 3), (torch.zeros(2, 4), torch.zeros(2, 3)), precision="amp-fp16")


def test_an_answer_of_fit_has_the_peaks_of_its_own_capture():
    """Where the engine does not follow another size, the answer and its peaks are those of captures."""
    class Doubling(torch.nn.Linear):
        def forward(self, x):
            return super().forward(torch.cat([x] * (2 if len(x) > 40 else 1))).sum()

    row = metaprof.fit(Doubling(256, 256), (torch.empty(32, 256),), device="h200", memory="100MiB", context="none", precision="bf16", workspaces="none").rows[0]
    step = metaprof.profile(Doubling(256, 256), (torch.empty(row["largest"], 256),), device="h200", precision="bf16", workspaces="none")
    assert (row["peak_allocated_bytes"], row["options"]["precision"]) == (step.peak.allocated, "bf16")
