"""Programs that are saved take the memory of their run, in each phase and to the byte.

METAPROF_TORCH_PYTHON is a Python with PyTorch; without it the tests are skipped, and say so.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from programs import METAPROF  # noqa: E402

PYTHON = os.environ.get("METAPROF_TORCH_PYTHON")

# The first part of a backward ends at the input, and hooks before nodes keep the gradients that the second part begins with.
PARTS_OF_A_BACKWARD = """
    import torch
    from torch.autograd.graph import GradientEdge

    layers = torch.nn.ModuleList(torch.nn.Linear(256, 256, bias=False) for _ in range(4)).cuda()
    optimizer = torch.optim.SGD(layers.parameters(), 0.1)

    def forward(x):
        nodes = []
        for layer in layers:
            x = layer(x)
            nodes.append(x.grad_fn)
            x = torch.relu(x)
        return x, nodes

    def leaf(weight):
        return weight.view_as(weight).grad_fn.next_functions[0][0]

    for step in range(3):
        x = torch.randn(512, 256, device="cuda", requires_grad=True)
        y, nodes = forward(x)
        kept = {}
        handles = [node.register_prehook(lambda gradients, i=i: kept.setdefault(i, gradients) and None) for i, node in enumerate(nodes)]
        given, = torch.autograd.grad(y.sum(), [x], retain_graph=True)
        for handle in handles:
            handle.remove()
        y.detach_()
        del y
        for i, layer in reversed(list(enumerate(layers))):
            gradient, = kept.pop(i)
            layer.weight.grad, = torch.autograd.grad([GradientEdge(nodes.pop(), 0)], [GradientEdge(leaf(layer.weight), 0)], [gradient * 2])
        optimizer.step()
        optimizer.zero_grad()
"""

# The tensor has gone when the backward begins at its edge.
EDGE_OF_A_TENSOR = """
    import torch
    from torch.autograd.graph import get_gradient_edge

    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 256)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(3):
        edge = get_gradient_edge(model(torch.randn(64, 256, device="cuda")) * 2)
        torch.autograd.backward([edge], [torch.ones(64, 256, device="cuda")])
        optimizer.step()
        optimizer.zero_grad()
"""

# What a hook on a gradient keeps lives on, although the hook calls nothing.
KEPT_GRADIENTS = """
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.Linear(1024, 256)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(3):
        kept = []
        hidden = model[0](torch.randn(512, 256, device="cuda"))
        hidden.register_hook(kept.append)
        model[1](hidden).sum().backward()
        norm = kept.pop().norm()
        optimizer.step()
        optimizer.zero_grad()
"""

PROGRAMS = {"parts of a backward": PARTS_OF_A_BACKWARD, "edge of a tensor": EDGE_OF_A_TENSOR, "kept gradients": KEPT_GRADIENTS}


@unittest.skipUnless(PYTHON, "METAPROF_TORCH_PYTHON names no Python with PyTorch")
class SavedProgramsTest(unittest.TestCase):
    def test_a_saved_program_is_as_its_run(self):
        for name, text in PROGRAMS.items():
            if os.environ.get("METAPROF_ONLY", "") not in name:
                continue
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                row = self.checked(folder, text)
                self.assertEqual(row["exact_phases"], row["phases"], row)

    def checked(self, folder, text):
        program, saved = pathlib.Path(folder, "program.py"), pathlib.Path(folder, "saved.mp")
        program.write_text(textwrap.dedent(text))
        result = subprocess.run([METAPROF, "run", "--save", saved, "--", PYTHON, program], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        checked = subprocess.run([METAPROF, "check", saved, "--json", "-"], capture_output=True, text=True)
        self.assertTrue(checked.stdout, checked.stderr)
        return json.loads(checked.stdout)["summary"][0]


if __name__ == "__main__":
    unittest.main()
