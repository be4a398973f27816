"""Callbacks of trainers, the cell of a notebook, and fixtures of pytest."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here")

import metaprof  # noqa: E402

pytest_plugins = ["pytester"]


def test_the_trainer_of_transformers(tmp_path, capsys):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from metaprof.integrations.hugging_face import MetaprofCallback

    config = transformers.GPT2Config(n_layer=2, n_embd=64, n_head=2, vocab_size=100)
    model = transformers.GPT2LMHeadModel(config)
    data = [{"input_ids": [1] * 16, "labels": [1] * 16}] * 8
    callback = MetaprofCallback(device="t4")
    arguments = transformers.TrainingArguments(output_dir=str(tmp_path), per_device_train_batch_size=4, max_steps=2, report_to=[], use_cpu=True,
                                               gradient_accumulation_steps=2, save_strategy="no", disable_tqdm=True)
    transformers.Trainer(model, arguments, train_dataset=data, callbacks=[callback]).train()
    assert "metaprof: FITS t4: " in capsys.readouterr().err
    assert callback.profile.parameters == sum(each.numel() for each in model.parameters())
    assert {phase.get("micro") for phase in callback.profile.json["phases"] if phase["phase"] == "forward"} == {0, 1}
    assert all(each.device.type == "cpu" for each in model.parameters())

    too_large = MetaprofCallback(device="t4", stop=True, memory="2MiB", context="none")
    with pytest.raises(MemoryError, match="DOES NOT FIT t4"):
        transformers.Trainer(model, arguments, train_dataset=data, callbacks=[too_large]).train()


def test_the_trainer_of_lightning(tmp_path, capsys):
    pl = pytest.importorskip("lightning.pytorch")
    from metaprof.integrations.lightning import MetaprofCallback

    class Net(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.GELU(), torch.nn.Linear(64, 4))

        def training_step(self, batch, index):
            x, y = batch
            loss = torch.nn.functional.cross_entropy(self.net(x), y)
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

    data = torch.utils.data.TensorDataset(torch.randn(32, 16), torch.zeros(32, dtype=torch.int64))
    callback, model = MetaprofCallback(device="t4"), Net()
    trainer = pl.Trainer(max_steps=2, accelerator="cpu", callbacks=[callback], logger=False, enable_checkpointing=False,
                         enable_progress_bar=False, enable_model_summary=False, default_root_dir=str(tmp_path))
    trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=8))
    assert "metaprof: FITS t4: " in capsys.readouterr().err
    parameters = sum(each.numel() for each in model.parameters())
    # AdamW's two states of each parameter, and its steps.
    assert max(phase["allocated_bytes"]["peak"] for phase in callback.profile.json["phases"]) >= 4 * 4 * parameters
    assert trainer.global_step == 2 and "loss" in trainer.callback_metrics
    assert all(each.device.type == "cpu" for each in model.parameters())

    mixed = MetaprofCallback(device="t4")
    pl.Trainer(max_steps=1, accelerator="cpu", precision="bf16-mixed", callbacks=[mixed], logger=False, enable_checkpointing=False,
               enable_progress_bar=False, enable_model_summary=False, default_root_dir=str(tmp_path)).fit(model, torch.utils.data.DataLoader(data, batch_size=8))
    # Autocast's copies of weights are alive in the forward.
    forward = [next(phase["allocated_bytes"]["peak"] for phase in each.profile.json["phases"] if phase["phase"] == "forward") for each in (callback, mixed)]
    assert forward[1] > forward[0]


def test_a_cell_is_a_program():
    from metaprof.integrations.notebook import words_to_options

    assert words_to_options(["--device", "t4", "--fixes", "--world-size=2"]) == {"device": "t4", "fixes": True, "world_size": "2"}
    with pytest.raises(metaprof.Error, match="'t4' belongs to no option"):
        words_to_options(["t4"])


def test_fixtures(pytester):
    pytester.makeini("[pytest]\nmetaprof_device = t4\n")
    pytester.makepyfile(test_it="""
        import torch

        model, args = torch.nn.Linear(64, 64), (torch.zeros(8, 64), torch.zeros(8, 64))

        def test_fits(metaprof_fits):
            assert metaprof_fits(model, args).json["device"] == "t4"

        def test_does_not_fit(metaprof_fits):
            metaprof_fits(model, args, memory="40KiB", context="none")

        def test_is_as_before(metaprof_baseline):
            metaprof_baseline("step.json", model, args)
    """)
    result = pytester.runpytest_subprocess("-p", "metaprof.integrations.testing")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*DOES NOT FIT t4*", "*step.json is not there: --metaprof-accept writes it*"])
    accepted = pytester.runpytest_subprocess("-p", "metaprof.integrations.testing", "--metaprof-accept", "-k", "as_before")
    accepted.assert_outcomes(passed=1)

    pytester.makepyfile(test_it="""
        import torch

        def step(width):
            return torch.nn.Linear(width, width), (torch.zeros(8, width), torch.zeros(8, width))

        def test_is_as_before(metaprof_baseline):
            metaprof_baseline("step.json", *step(64))

        def test_has_grown(metaprof_baseline):
            metaprof_baseline("step.json", *step(640))

        def test_is_of_another_card(metaprof_baseline):
            metaprof_baseline("step.json", *step(64), device="l40s")

        def test_is_no_report(metaprof_baseline):
            metaprof_baseline("other.json", *step(64))
    """)
    (pytester.path / "other.json").write_text("{}")
    result = pytester.runpytest_subprocess("-p", "metaprof.integrations.testing")
    result.assert_outcomes(passed=1, failed=3)
    result.stdout.fnmatch_lines(["*allocated_bytes of the peak grew from *--metaprof-accept takes it*",
                                 "*step.json is of the card t4, and this step of l40s: --metaprof-accept writes it anew*",
                                 "*other.json is no report of a step (KeyError: 'device'): --metaprof-accept writes it anew*"])
    assert pytester.runpytest_subprocess("-p", "metaprof.integrations.testing", "--metaprof-accept", "-k", "has_grown").ret == 0
