"""Paths of modules and places of parameters, which are forgotten with their modules."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"))
from metaprof_recorder.program.modules import Modules, Parameters  # noqa: E402


class Module:
    """As much of a module as is asked for. All are equal to each other and have no hash."""

    def __init__(self, parameters=(), **inner):
        self._parameters, self._inner = dict(parameters), inner

    def __eq__(self, other):
        return True

    def parameters(self):
        return iter(self._parameters.values())

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, module in self._inner.items():
            yield from module.named_modules(f"{prefix}.{name}" if prefix else name)


class ModulesTest(unittest.TestCase):
    def test_paths_begin_at_an_outermost_module(self):
        modules, layer = Modules(), Module()
        root = Module(fc=layer)
        self.assertEqual(modules.name(root), "")
        self.assertEqual(modules.path(layer), "fc")
        self.assertIsNone(modules.path(Module()))

    def test_those_of_a_second_one_begin_with_its_class(self):
        modules, first, layer = Modules(), Module({"scale": "s"}), Module()
        modules.name(first)
        second, third = Module({"scale": "s"}, fc=layer), Module({"scale": "s"})
        self.assertEqual([modules.name(second), modules.name(third)], ["Module", "Module_2"])
        self.assertEqual(modules.path(layer), "Module.fc")

    def test_one_that_follows_when_the_first_is_gone_has_its_name(self):
        modules = Modules()
        self.assertEqual([modules.name(Module({"scale": "s"})) for _ in range(3)], ["", "", ""])

    def test_a_loss_takes_no_models_name(self):
        modules, loss, model = Modules(), Module(), Module({"scale": "s"})
        self.assertEqual([modules.name(loss), modules.name(model)], ["", ""])

    def test_a_module_that_is_let_go_is_forgotten(self):
        modules = Modules()
        for _ in range(3):
            root = Module(fc=Module())
            modules.name(root)
            del root
        self.assertEqual(len(modules._paths._values), 0)


class ParametersTest(unittest.TestCase):
    def test_names_and_what_stands_there_now(self):
        layer = Module({"weight": "w", "bias": None})
        root = Module({"scale": "s"}, fc=layer)
        parameters = Parameters()
        parameters.add(root, "net")
        self.assertEqual(parameters.now(), [("net.scale", "s"), ("net.fc.weight", "w")])
        layer._parameters["weight"] = "another"
        self.assertEqual(parameters.now(), [("net.scale", "s"), ("net.fc.weight", "another")])

    def test_one_that_two_modules_share_has_the_first_name(self):
        shared = ["w"]
        root = Module(a=Module({"weight": shared}), b=Module({"weight": shared}))
        parameters = Parameters()
        parameters.add(root, "")
        self.assertEqual(parameters.now(), [("a.weight", shared)])

    def test_those_of_a_module_that_is_let_go_are_forgotten(self):
        parameters, root = Parameters(), Module({"weight": "w"})
        parameters.add(root, "")
        del root
        self.assertEqual(parameters.now(), [])
        self.assertEqual(parameters._places, [])


if __name__ == "__main__":
    unittest.main()
