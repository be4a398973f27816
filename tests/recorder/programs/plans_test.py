"""Every form of a plan, written as a Python file, brought into a model and run on an emulated device: the peak is the promised one.

Needs a Python with PyTorch: METAPROF_TORCH_PYTHON names it. The program is METAPROF (by default the one of the release build).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PYTHON = os.environ.get("METAPROF_TORCH_PYTHON")
METAPROF = os.environ.get("METAPROF", str(ROOT / "build/release/cli/metaprof"))

MODEL = """
import os, sys, torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.act, self.down = nn.LayerNorm(256), nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)
    def forward(self, x, scale):
        return x + self.down(self.act(self.up(self.norm(x)))) * scale

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(6)])
    def forward(self, x):
        scale = torch.ones(256, device=x.device)
        for block in self.blocks:
            x = block(x, scale)
        return x.square().mean()
"""
EXPORT = MODEL + """
torch.export.save(torch.export.export(Net(), (torch.zeros(512, 256),)), sys.argv[1])
"""
TRAIN = MODEL + """
import importlib.util
for number, file in enumerate(sys.argv[1:]):
    os.environ["RANK"] = str(number)
    if os.fork() == 0:
        spec = importlib.util.spec_from_file_location("plan", file)
        plan = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(plan)
        net = plan.apply_plan(Net()).cuda()
        x = torch.zeros(512, 256).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
        for _ in range(2):
            loss = net(x)
            loss.backward(); optimizer.step(); optimizer.zero_grad()
        os._exit(0)
    os.wait()
"""
PLANS = {
    "nothing": [],
    "modules": ["blocks.[0-3]"],
    "modules within modules": ["blocks.0{blocks.0.act blocks.0.norm}", "blocks.5"],
    "neighbours": ["blocks.0..blocks.2", "blocks.3..blocks.4"],
    "neighbours within neighbours": ["blocks.0..blocks.4{blocks.0..blocks.1 blocks.2..blocks.3{blocks.2}}"],
    "results that stay": ["blocks.[0-2]{=addmm:0}", "blocks.3{=addmm:1 =gelu}", "blocks.4{=addmm}"],
    "on the host": ["blocks.0", "blocks.[1-3]{>host}"],
}


@unittest.skipUnless(PYTHON, "METAPROF_TORCH_PYTHON names no Python with PyTorch")
class Plans(unittest.TestCase):
    def test_peaks_are_those_that_were_promised(self):
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            (work / "export.py").write_text(EXPORT)
            (work / "train.py").write_text(TRAIN)
            subprocess.run([PYTHON, work / "export.py", work / "net.pt2"], check=True, capture_output=True)
            promised, files = [], []
            for number, words in enumerate(PLANS.values()):
                (work / "plan.json").write_text(json.dumps({"strategy": "given", "checkpoint": words}))
                files.append(work / f"plan{number}.py")
                answer = subprocess.run([METAPROF, "plan", work / "net.pt2", "--plan", work / "plan.json", "--budget", "1TiB", "--optimizer", "sgd",
                                         "--steps", "2", "--python", files[-1], "--json", "-"], capture_output=True, text=True)
                self.assertEqual(answer.returncode, 0, answer.stderr)
                promised.append(json.loads(answer.stdout)["peak"])
            run = subprocess.run([METAPROF, "run", "--json", work / "run.json", "--", PYTHON, work / "train.py", *files], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            ranks = {rank["rank"]: rank for rank in json.loads((work / "run.json").read_text())["ranks"]}
            for number, name in enumerate(PLANS):
                with self.subTest(name):
                    self.assertEqual(max(phase["allocated_bytes"]["peak"] for phase in ranks[number]["phases"]), promised[number])


if __name__ == "__main__":
    unittest.main()
