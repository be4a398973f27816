"""Modules: their forward is captured in this process, on a device that is not there."""

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


def test_no_loss_is_an_error():
    with pytest.raises(metaprof.Error, match="no scalar loss"):
        metaprof.profile(torch.nn.Linear(4, 3), (torch.zeros(2, 4),))
    with pytest.raises(metaprof.Error, match="example arguments"):
        metaprof.profile(torch.nn.Linear(4, 3))
    with pytest.raises(metaprof.Error, match="cannot be called with these arguments: ."):
        metaprof.profile(torch.nn.Linear(4, 3), (torch.zeros(2, 5),))
    with pytest.raises(metaprof.Error, match="an nn.Module, a function that trains, or a path, not int"):
        metaprof.profile(3, (torch.zeros(2, 5),))
