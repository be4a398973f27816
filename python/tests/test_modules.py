"""Modules: exported for the user, without their weights."""

import pytest

import metaprof

torch = pytest.importorskip("torch")


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
    assert result.json["parameters"]["tied"] == [["model.embed.weight", "model.head.weight"]]
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


def test_the_model_is_left_as_it_was():
    model = torch.nn.Linear(4, 3)
    before = model.weight
    metaprof.profile(model, (torch.zeros(2, 4), torch.zeros(2, 3)))
    assert model.weight is before and model.weight.device.type == "cpu"


def test_no_loss_is_an_error():
    with pytest.raises(metaprof.Error, match="no scalar loss"):
        metaprof.profile(torch.nn.Linear(4, 3), (torch.zeros(2, 4),))
    with pytest.raises(metaprof.Error, match="example arguments"):
        metaprof.profile(torch.nn.Linear(4, 3))
