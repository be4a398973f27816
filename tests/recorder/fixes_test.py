"""Which changes a program could use, and what one of them does, of a torch that is made up."""
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"))
from metaprof_recorder.program.fixes import Fixes  # noqa: E402


class Module:
    def __init__(self, *children, parameters=True, training=True):
        self._children, self._has_parameters, self.training = children, parameters, training

    def children(self):
        return iter(self._children)

    def parameters(self):
        return iter([1] if self._has_parameters else [])

    def modules(self):
        yield self
        for child in self._children:
            yield from child.modules()

    def forward(self, value):
        return value


class ModuleList(Module):
    pass


class Sequential(Module):
    pass


class Block(Module):
    pass


class FixesTest(unittest.TestCase):
    def begin(self, chosen=""):
        """A torch of which everything is noted that it is called with, and the changes."""
        called = self.called = []

        class Optimizer:
            def __init__(self, parameters, foreach=None, fused=None):
                called.append({"foreach": foreach, "fused": fused})

            def zero_grad(self, set_to_none=True):
                called.append(set_to_none)

        class autocast:  # noqa: N801 - as torch calls it
            def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
                called.append(cache_enabled)

        class DistributedDataParallel:
            def __init__(self, module, gradient_as_bucket_view=False):
                called.append(gradient_as_bucket_view)

        self.grad, self.allocated = True, 0

        def load(file, map_location=None):
            called.append(map_location)
            self.allocated += map_location != "cpu"

        def set_grad(value):
            self.grad = value

        nn = types.SimpleNamespace(ModuleList=ModuleList, Sequential=Sequential, parallel=types.SimpleNamespace(DistributedDataParallel=DistributedDataParallel))
        self.torch = types.SimpleNamespace(
            optim=types.SimpleNamespace(Optimizer=Optimizer), load=load, autocast=autocast, nn=nn, is_grad_enabled=lambda: self.grad,
            jit=types.SimpleNamespace(is_tracing=lambda: False), _C=types.SimpleNamespace(_set_grad_enabled=set_grad),
            cuda=types.SimpleNamespace(is_initialized=lambda: True, memory_allocated=lambda: self.allocated, empty_cache=lambda: called.append("empty")),
            utils=types.SimpleNamespace(checkpoint=types.SimpleNamespace(checkpoint=lambda function, *arguments, use_reentrant: ("checkpoint", function(*arguments)))))
        self.fixes = Fixes(self.torch, chosen)
        self.fixes.install([Optimizer])
        return self.torch

    def test_what_options_would_change(self):
        for use, name, before, after in (
                (lambda torch: torch.optim.Optimizer([]), "foreach", {"foreach": None, "fused": None}, {"foreach": False, "fused": None}),
                (lambda torch: torch.optim.Optimizer([], foreach=True), "fused", {"foreach": True, "fused": None}, {"foreach": None, "fused": True}),
                (lambda torch: torch.optim.Optimizer.zero_grad(None, set_to_none=False), "set_to_none", False, True),
                (lambda torch: torch.load("file"), "map_location", None, "cpu"),
                (lambda torch: torch.load("file", map_location="cuda"), "map_location", "cuda", "cpu"),
                (lambda torch: torch.autocast("cuda"), "autocast_cache", None, False),
                (lambda torch: torch.nn.parallel.DistributedDataParallel(None), "bucket_view", False, True)):
            with self.subTest(name):
                use(self.begin())
                self.assertEqual(self.called, [before])
                self.assertIn(name, self.fixes.found)
                use(self.begin(name))
                self.assertEqual(self.called, [after])

    def test_what_is_so_already(self):
        for use in (lambda torch: torch.optim.Optimizer([], fused=True), lambda torch: torch.optim.Optimizer.zero_grad(None),
                    lambda torch: torch.load("file", map_location="cpu"), lambda torch: torch.autocast("cuda", cache_enabled=False),
                    lambda torch: torch.autocast("cuda", enabled=False), lambda torch: torch.autocast("cpu"),
                    lambda torch: torch.nn.parallel.DistributedDataParallel(None, gradient_as_bucket_view=True)):
            use(self.begin())
            self.assertEqual(self.fixes.found, [])

    def test_calls_in_eval_mode_need_no_graph(self):
        self.begin("no_grad")
        self.fixes.enter(Module(training=False))
        self.assertFalse(self.grad)
        self.fixes.leave()
        self.assertTrue(self.grad)
        self.begin()
        self.fixes.enter(Module(training=False))
        self.assertTrue(self.grad)
        self.assertEqual(self.fixes.found, ["no_grad"])
        self.begin("no_grad")
        self.fixes.enter(Module(training=False, parameters=False))  # a loss
        self.assertTrue(self.grad)

    def test_the_cache_is_emptied_between_training_and_evaluation(self):
        for chosen in "", "empty_cache":
            self.begin(chosen)
            for training, emptied in (True, 0), (True, 0), (False, 1), (False, 1), (True, 2):
                self.fixes.enter(Module(parameters=False))  # a loss
                self.fixes.enter(Module(training=training))
                self.assertEqual(len(self.called), emptied if chosen else 0)
            self.assertIn("empty_cache", self.fixes.found)

    def test_blocks_are_checkpointed(self):
        leaf = Module()
        first, second = Block(leaf), Block(leaf)
        net = Module(ModuleList(first, second), Sequential(Module(), Module()), ModuleList(Block(leaf)))
        self.begin()
        self.fixes.enter(net)
        self.assertEqual(self.fixes.found, ["checkpoint"])
        self.assertEqual(first.forward(5), 5)
        self.begin("checkpoint")
        self.fixes.enter(net)
        self.assertEqual((first.forward(5), second.forward(6), leaf.forward(7)), (("checkpoint", 5), ("checkpoint", 6), 7))
        self.fixes.enter(net)  # once
        self.assertEqual(first.forward(5), ("checkpoint", 5))

    def test_a_model_that_does_it_itself_is_told(self):
        class Model(Module):
            told = 0

            def gradient_checkpointing_enable(self):
                Model.told += 1

        self.begin("checkpoint")
        self.fixes.enter(Model(ModuleList(Block(Module()), Block(Module()))))
        self.assertEqual(Model.told, 1)


if __name__ == "__main__":
    unittest.main()
