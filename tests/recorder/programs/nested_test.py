"""Programs with nested tensors are saved, and the saved program takes the memory of the run.

METAPROF_TORCH_PYTHON is a Python with PyTorch; without it the test is skipped, and says so.
"""
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
# Operators that the key of values passes on (a fallthrough) stand in its way: chunk, unflatten, attention.
ATTENTION = """
    import torch
    from torch import nn
    q, kv = nn.Linear(64, 64).cuda(), nn.Linear(64, 128).cuda()
    optimizer = torch.optim.SGD([*q.parameters(), *kv.parameters()], 0.1)
    def heads(x):
        return x.unflatten(-1, (4, 16)).transpose(1, 2)
    for step in range(3):
        x = torch.nested.nested_tensor([torch.randn(n, 64) for n in (30, 50, 20)], layout=torch.jagged).cuda()
        k, v = kv(x).chunk(2, -1)
        y = nn.functional.scaled_dot_product_attention(heads(q(x)), heads(k), heads(v))
        z = y.transpose(1, 2).flatten(-2) * 2.0 + x.sin()
        (z.values() ** 2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""

# What they save is packed by the checkpoint, and made again in backward.
CHECKPOINTED = """
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint
    layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(3)).cuda()
    optimizer = torch.optim.SGD(layers.parameters(), 0.1)
    def block(x, layer):
        return torch.nn.functional.gelu(layer(x).sin() * 2.0)
    for step in range(3):
        x = torch.nested.nested_tensor([torch.randn(n, 64) for n in (30, 50, 20)], layout=torch.jagged).cuda()
        for layer in layers:
            x = checkpoint(block, x, layer, use_reentrant=False)
        (x.values() ** 2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


@unittest.skipUnless(PYTHON, "METAPROF_TORCH_PYTHON names no Python with PyTorch")
class NestedTest(unittest.TestCase):
    def test_a_saved_program_is_as_its_run(self):
        for name, text in {"attention": ATTENTION, "checkpointed": CHECKPOINTED}.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                program, saved = pathlib.Path(folder, "program.py"), pathlib.Path(folder, "saved.mp")
                program.write_text(textwrap.dedent(text))
                result = subprocess.run([METAPROF, "run", "--workspaces", "none", "--save", saved, "--", PYTHON, program], capture_output=True, text=True)
                self.assertEqual(result.returncode, 0, result.stderr)
                checked = subprocess.run([METAPROF, "check", saved], capture_output=True, text=True)
                self.assertIn("bytes of every phase equal: 1 of 1", checked.stdout, checked.stderr)

    def test_a_selective_checkpoint_is_refused(self):
        text = CHECKPOINTED.replace("use_reentrant=False", "use_reentrant=False, context_fn=lambda: contexts([torch.ops.aten.gelu.default])")
        text = text.replace("import checkpoint\n", "import checkpoint, create_selective_checkpoint_contexts as contexts\n")
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "program.py")
            program.write_text(textwrap.dedent(text))
            result = subprocess.run([METAPROF, "run", "--save", f"{folder}/saved.mp", "--", PYTHON, program], capture_output=True, text=True)
            self.assertIn("is called on nested tensors of jagged layout within a selective checkpoint", result.stdout + result.stderr)
            self.assertEqual(result.returncode, 2, result.stderr)


if __name__ == "__main__":
    unittest.main()
