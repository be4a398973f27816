"""Which changes a program could use, and what one of them does, of a torch that is made up."""
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"))
from metaprof_recorder.program.fixes import Fixes  # noqa: E402


class Parameter:
    is_cuda, dtype = True, "fp32"


class Result:
    """A tensor that a module returned, and its node."""

    def __init__(self):
        self.grad_fn, self._hooks = self, []

    def register_prehook(self, hook):
        self._hooks.append(hook)

    def backward(self):
        for hook in self._hooks:
            hook(())


class Module:
    def __init__(self, *children, parameters=True, training=True):
        self._children, self._has_parameters, self.training = children, parameters, training

    def children(self):
        return iter(self._children)

    def parameters(self):
        return iter([Parameter] if self._has_parameters else [])

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

            def __enter__(self):
                called.append("begins")

            def __exit__(self, *_):
                called.append("ends")

        class Loader:
            def _next_index(self):
                return [3, 1, 4, 1, 5]

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
            bfloat16="bf16", float32="fp32", is_autocast_enabled=lambda device: False,
            utils=types.SimpleNamespace(
                data=types.SimpleNamespace(dataloader=types.SimpleNamespace(_BaseDataLoaderIter=Loader)),
                checkpoint=types.SimpleNamespace(checkpoint=lambda function, *arguments, use_reentrant: ("checkpoint", function(*arguments)))))
        self.line = "train.py:1"
        self.fixes = Fixes(self.torch, chosen, lambda results: results or [], lambda: self.line)
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

    def call(self, line, module=None):
        """What a call of a module in this line returns."""
        self.line, result = line, Result()
        self.fixes.enter(module or Module())
        self.fixes.leave([result])
        return result

    def changes(self):
        return [row["name"] for row in self.fixes.rows() if row["name"].startswith("no_grad")]

    def test_calls_that_no_backward_follows_need_no_graph(self):
        self.begin()
        for _ in range(2):
            self.call("val.py:2")
            self.call("train.py:1").backward()
            self.call("ref.py:3", Module(training=False))
            self.call("loss.py:4", Module(parameters=False))
        self.call("once.py:5")  # memory may have run out before its backward
        self.assertEqual(self.changes(), ["no_grad=val.py:2", "no_grad=ref.py:3"])
        self.assertEqual(next(row for row in self.fixes.rows() if row["name"] == "no_grad=val.py:2"),
                         {"name": "no_grad=val.py:2", "line": "val.py:2",
                          "change": "with torch.no_grad(): around the call in {}, which no backward follows"})

    def test_a_call_is_made_without_a_graph(self):
        self.begin("no_grad=val.py:2\nbatch=2")
        self.line = "train.py:1"
        self.fixes.enter(Module())
        self.assertTrue(self.grad)
        self.fixes.leave(None)
        self.line = "val.py:2"
        self.fixes.enter(Module())
        self.assertFalse(self.grad)
        self.fixes.leave(None)
        self.assertTrue(self.grad)

    def test_batches_are_cut(self):
        for chosen, given in ("", [3, 1, 4, 1, 5]), ("batch=2", [3, 1]):
            loader = self.begin(chosen).utils.data.dataloader._BaseDataLoaderIter
            self.assertEqual(loader()._next_index(), given)
            self.assertEqual(self.fixes.rows()[-1], {"name": "batch", "change": "DataLoader(…, batch_size={})", "largest": 5})

    def test_a_model_that_trains_computes_in_bf16(self):
        for chosen in "", "autocast":
            self.begin(chosen)
            self.call("train.py:1")
            self.call("val.py:1", Module(training=False))
            self.assertEqual([word for word in self.called if word is not None], ["begins", "ends"] if chosen else [])
            self.assertIn("autocast", self.fixes.found)

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
        self.assertEqual(self.fixes.found, ["checkpoint", "autocast"])
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
