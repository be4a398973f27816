"""Modules that the command line names, captured by the Python that runs these tests: as metaprof.profile captures them."""

import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import metaprof  # noqa: E402
from metaprof._program import program_path  # noqa: E402

FILE = '''
import torch
from torch import nn
net = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
x, y = torch.randn(32, 64), torch.zeros(32, dtype=torch.int64)
def make(): return net, (x, y)
def by_name(): return net, {"input": x}, lambda output: output.square().mean()
def step():
    nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()
    optimizer.step()
    optimizer.zero_grad()
def takes(a): return net
def number(): return 3
def breaks(): raise ValueError("no data")
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return str(path)


def called(*words):
    return subprocess.run([program_path(), *words], text=True, capture_output=True, env={**os.environ, "METAPROF_PYTHON": sys.executable})


def profiled(*words):
    done = called("profile", *words, "--json", "-")
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def refused(*words):
    done = called("profile", *words)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("metaprof: ") and done.stderr.count("\n") == 1
    return done.stderr


@pytest.mark.parametrize("options", [{}, {"batch": 128}, {"precision": "amp-bf16", "optimizer": "sgd"}, {"mode": "inference"}, {"steps": 2}])
def test_a_function_that_makes_a_module(file, options):
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 10))
    args = (torch.randn(32, 64), torch.zeros(32, dtype=torch.int64))
    if options.get("mode") == "inference":
        args = args[:1]
    ours = metaprof.profile(net, args, **options)
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    report = profiled(file + ":make" if len(args) == 2 else file + ":by_name", *words)
    if len(args) == 2:
        assert report["phases"] == ours.json["phases"]
    assert len(report["phases"]) == len(ours.json["phases"])


def test_a_report_is_a_baseline(file, tmp_path):
    accepted = str(tmp_path / "accepted.json")
    options = ["--device", "t4", "--precision", "amp-bf16", "--batch", "64", "--optimizer", "sgd"]
    assert called("profile", file + ":make", *options, "--json", accepted).returncode == 0
    done = called("check", file + ":make", "--baseline", accepted)
    assert done.returncode == 0, done.stderr + done.stdout
    with open(file) as source:
        text = source.read()
    with open(file, "w") as changed:
        changed.write(text.replace("256", "512"))
    assert called("check", file + ":make", "--baseline", accepted).returncode == 1


def test_a_function_that_is_a_step(file):
    report = profiled(file + ":step")
    assert report["framework"]["reason"] == "which ran the program"
    assert [phase["phase"] for phase in report["phases"] if phase.get("step") == 1] == ["forward", "backward", "optimizer", "zero_grad"]


def test_the_search_for_a_batch_and_a_capture_of_it_agree(file):
    done = called("fit", file + ":make", "--device", "t4", "--memory", "400MiB", "--context", "none", "--json", "-")
    row = json.loads(done.stdout)["rows"][0]
    largest = row["largest"]
    assert f"batch {largest} and {largest + 1} were captured again: the one fits, the other does not" in done.stderr
    for more, status in (0, 0), (1, 1):
        words = ("profile", file + ":make", "--device", "t4", "--memory", "400MiB", "--context", "none", "--batch", str(largest + more))
        assert called(*words).returncode == status


def test_a_sweep_shows_what_was_asked_for(file):
    done = called("sweep", file + ":make", "--batch", "16,64", "--precision", "bf16", "--json", "-")
    rows = json.loads(done.stdout)["rows"]
    assert [(row["options"]["batch"], row["options"]["precision"]) for row in rows] == [(16, "bf16"), (64, "bf16")]
    for row in rows:
        alone = profiled(file + ":make", "--batch", str(row["options"]["batch"]), "--precision", "bf16")
        assert row["peak_allocated_bytes"] == alone["peak"]["allocated_bytes"]


@pytest.mark.parametrize("name, message", [
    ("takes", "is called without arguments, and takes a; write one that takes none"),
    ("number", "returns int; expected (module, inputs), or a function that calls backward"),
    ("breaks", "ValueError: no data"),
    ("nothing", "has no function 'nothing'; it has make, by_name, step, takes, number, breaks"),
])
def test_a_function_that_is_none(file, name, message):
    assert message in refused(f"{file}:{name}")


@pytest.mark.parametrize("text, message", [
    ("torch.nn.Linear(4, 3).cuda()\ndef make(): pass",
     "a device is there while 'make' is called, so use it there, or give the program to metaprof run"),
    ("def make(): return torch.nn.Linear(4, 3), (torch.zeros(2, 4),)",
     "pass the targets as the last argument, or loss=…; FILE.py:FUNCTION returns (module, inputs, loss)"),
    ("class Packs(torch.nn.Module):\n"
     " def forward(self, x, lengths): return torch.nn.utils.rnn.pack_padded_sequence(x.requires_grad_(), lengths).data.sum()\n"
     "def make(): return Packs(), (torch.zeros(3, 2, 4), torch.tensor([3, 2]))",
     "metaprof run executes the program itself, and a function that calls backward keeps on the host what it has there"),
])
def test_what_a_file_can_do_instead(tmp_path, text, message):
    (tmp_path / "mine.py").write_text("import torch\n" + text)
    assert message in refused(f"{tmp_path / 'mine.py'}:make")


def test_lengths_that_stay_on_the_host(tmp_path):
    (tmp_path / "mine.py").write_text("""
import torch
from torch.nn.utils.rnn import pack_padded_sequence
net, x, lengths = torch.nn.LSTM(4, 8), torch.zeros(3, 2, 4), torch.tensor([3, 2])
def step():
    net(pack_padded_sequence(x.cuda(), lengths))[0].data.sum().backward()
""")
    report = profiled(f"{tmp_path / 'mine.py'}:step")
    assert "backward" in [phase["phase"] for phase in report["phases"]]


def test_no_such_file():
    assert "nofile.py: no such file" in refused("nofile.py:make")


@pytest.mark.parametrize("name", ["timm:resnet18", "timm:vit_tiny_patch16_224", "torchvision:mobilenet_v3_small", "torchvision:googlenet"])
def test_a_model_of_a_library(name):
    library, _, model = name.partition(":")
    module = pytest.importorskip(library)
    made = module.create_model(model) if library == "timm" else module.models.get_model(model, weights=None)
    report = profiled(name, "--batch", "2", "--optimizer", "sgd")
    assert report["parameters"]["count"] == sum(each.numel() for each in made.parameters())
    if model != "googlenet":
        ours = metaprof.profile(made, (torch.randn(2, 3, 224, 224), torch.zeros(2, dtype=torch.int64)), optimizer="sgd")
        assert report["phases"] == ours.json["phases"]


@pytest.mark.parametrize("option", ["clip_norm", "clip_value"])
def test_gradients_that_are_clipped(option):
    models = pytest.importorskip("torchvision").models
    words = "torchvision:mobilenet_v3_small", "--batch", "2", "--optimizer", "sgd"
    report = profiled(*words, "--" + option.replace("_", "-"), "0.5")
    ours = metaprof.profile(models.mobilenet_v3_small(weights=None), (torch.randn(2, 3, 224, 224), torch.zeros(2, dtype=torch.int64)),
                            optimizer="sgd", **{option: 0.5})
    assert report["phases"] == ours.json["phases"]
    if option == "clip_norm":  # by value, in place, takes nothing
        assert report["phases"] != profiled(*words)["phases"]


def test_a_model_of_transformers():
    pytest.importorskip("transformers")
    report = profiled("transformers:gpt2", "--batch", "2", "--sequence", "64", "--precision", "bf16")
    assert report["parameters"]["count"] == 124439808
    assert "the model cannot be called with these arguments" in refused("transformers:clip-vit-base-patch32")


@pytest.mark.parametrize("name, message", [("timm:resnet118", "timm has no model 'resnet118'"),
                                           ("torchvision:resnet19", "torchvision has no model 'resnet19'"),
                                           ("torchvision:fasterrcnn_resnet50_fpn", "a detector takes lists of pictures and boxes"),
                                           ("torchvision:raft_small", "takes pairs of pictures")])
def test_a_model_that_a_library_lacks(name, message):
    pytest.importorskip(name.partition(":")[0])
    assert message in refused(name)
