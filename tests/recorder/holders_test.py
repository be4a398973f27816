"""Which variable leads to what is alive on the device, of objects that are made up."""
import pathlib
import sys
import types
import unittest
import weakref

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"))
from metaprof_recorder.program.sources import Sources  # noqa: E402
from metaprof_recorder.storages.holders import Holders  # noqa: E402


class Node:
    """Of autograd: what it has saved."""

    def __init__(self, saved, *before):
        self.saved, self.before = saved, before


class TensorBase:
    nodes, gradients = {}, {}  # of tensors, by address: a tensor's own attributes are those that the program gave it
    grad = property(lambda tensor: TensorBase.gradients.get(tensor.address))


class Tensor(TensorBase):
    """As much of a tensor as is asked for."""

    def __init__(self, address, node=None, gradient=None):
        self.nodes[address], self.gradients[address] = node, gradient
        self.address, self.is_cuda, self.is_leaf = address, True, node is None
        self.dtype, self.shape, self.device = "torch.float32", (2, 3), types.SimpleNamespace(index=0)

    grad_fn = property(lambda tensor: tensor.nodes[tensor.address])

    def untyped_storage(self):
        return types.SimpleNamespace(data_ptr=lambda: self.address)

    def _is_view(self):
        return False


class Parameter(Tensor):
    pass


class Module:
    def __init__(self, parameters=(), buffers=(), **inner):
        self._parameters, self._buffers, self._modules = dict(parameters), dict(buffers), inner


class Optimizer:
    def __init__(self, state):
        self.state = state


TORCH = types.SimpleNamespace(Tensor=Tensor, nn=types.SimpleNamespace(Parameter=Parameter, Module=Module), optim=types.SimpleNamespace(Optimizer=Optimizer),
                              _C=types.SimpleNamespace(TensorBase=TensorBase))


class Graphs:
    @staticmethod
    def kept(results, seen):
        open_ = [result.grad_fn for result in results]
        while open_:
            node = open_.pop()
            if node in seen:
                continue
            seen.add(node)
            open_ += node.before
            yield from (types.SimpleNamespace(tensor=tensor) for tensor in node.saved)


def look(graphs=Graphs, names=None, given=None):
    """{address: Holder} of what the calling function and its callers hold."""
    found = Holders(TORCH, Sources("/torch"), names or {}, graphs).look(sys._getframe(1), given)
    return {address: holder for (address, _), holder in found.items()}


class Box:
    pass


class HoldersTest(unittest.TestCase):
    def assert_held(self, found, address, variable, kind, category=None, function=None):
        holder = found[address]
        self.assertEqual(holder.category, category)
        self.assertRegex(holder.text, rf"^{variable} \(.*holders_test\.py:\d+ in {function or self._testMethodName}\), {kind}$")

    def test_a_variable(self):
        loss = Tensor(1)  # noqa: F841
        found = look()
        self.assert_held(found, 1, "loss", "a Tensor")
        self.assertEqual((found[1].dtype, found[1].shape), ("f32", [2, 3]))

    def test_a_list_says_its_length(self):
        losses = [Tensor(1), (Tensor(2), {"of": Tensor(3)})]  # noqa: F841
        found = look()
        for address in (1, 2, 3):
            self.assert_held(found, address, "losses", "a list of 2")

    def test_attributes_are_named(self):
        box = Box()
        box.inner = Box()
        box.inner.seen = [Tensor(1)]
        self.assert_held(look(), 1, r"box\.inner\.seen", "a list of 1")

    def test_closures_and_generators(self):
        def outer():
            hidden = Tensor(1)
            return lambda: hidden

        def batches():
            batch = Tensor(2)
            yield 1
            yield batch

        function, generator = outer(), batches()  # noqa: F841
        next(generator)
        found = look()
        self.assert_held(found, 1, "function", "a function")
        self.assert_held(found, 2, "generator", "a generator")

    def test_modules_and_optimizers(self):
        weight = Parameter(1, gradient=Tensor(2))
        names = {id(weight): "fc.weight"}
        net = Module(fc=Module({"weight": weight}, {"mean": Tensor(3)}))  # noqa: F841
        optimizer = Optimizer({weight: {"exp_avg": Tensor(4), "step": Tensor(5)}})  # noqa: F841
        del weight
        found = look(names=names)
        self.assert_held(found, 1, "net", "a Module", "parameter")
        self.assert_held(found, 2, "net", "a Module", "gradient")
        self.assert_held(found, 3, "net", "a Module", "buffer")
        self.assert_held(found, 4, "optimizer", "an Optimizer", "optimizer_state")
        self.assertEqual(found[2].name, "fc.weight")
        self.assertEqual(found[4].name, "exp_avg of fc.weight")

    def test_what_hooks_of_a_model_lead_to_is_another_variable_s(self):
        net = Module({"weight": Parameter(1)})
        features = [Tensor(2)]
        net._forward_hooks = {0: lambda: features}
        net.extras = [net._parameters["weight"], Tensor(3)]
        found = look()
        self.assert_held(found, 1, "net", "a Module", "parameter")
        self.assert_held(found, 2, "features", "a list of 1")
        self.assert_held(found, 3, r"net\.extras", "a list of 2")

    def test_graphs(self):
        first = Node([Tensor(1)])
        val = Tensor(2, Node([Tensor(3)], first))  # noqa: F841
        del first
        found = look()
        self.assert_held(found, 2, "val", "a Tensor")
        self.assert_held(found, 1, "val", "a Tensor, by its graph", "activation")
        self.assert_held(found, 3, "val", "a Tensor, by its graph", "activation")
        self.assertEqual(set(look(graphs=None)), {2})  # a backward works on them

    def test_what_no_variable_leads_to_may_be_given(self):
        held = Tensor(1)  # noqa: F841
        found = look(given=("what Net returns", (Tensor(2, Node([Tensor(3)])), held)))
        self.assertRegex(found[2].text, r"^what Net returns \(.*holders_test\.py:\d+\), a tuple of 2$")
        self.assertRegex(found[3].text, r"^what Net returns \(.*holders_test\.py:\d+\), a tuple of 2, by its graph$")
        self.assert_held(found, 1, "held", "a Tensor")

    def test_the_outermost_function_comes_first(self):
        def inner(given):
            return look()

        outputs = [Tensor(1)]
        self.assert_held(inner(outputs), 1, "outputs", "a list of 1")

    def test_an_exception_that_is_handled_keeps_its_frames(self):
        def fails():
            kept = Tensor(1)
            raise ValueError(kept.address)

        try:
            fails()
        except ValueError:
            found = look()
        self.assertRegex(found[1].text, r"^kept \(.*holders_test\.py:\d+ in fails, kept by the exception that is handled\), a Tensor$")

    def test_objects_may_be_anything(self):
        class Hostile:
            def __getattribute__(self, name):
                raise RuntimeError("looked at")

            __class__ = property(__getattribute__)

        class Words(dict):
            def values(self):
                raise RuntimeError("looked at")

        hostile, words = Hostile(), Words(of=Tensor(1))  # noqa: F841
        self.assert_held(look(), 1, "words", "a Words of 1")

    def test_nothing_is_kept(self):
        def function():
            tensor = Tensor(1)
            look()
            reference = weakref.ref(tensor)
            del tensor
            return reference()

        self.assertIsNone(function())


if __name__ == "__main__":
    unittest.main()
