"""What a program with several models calls each of them."""
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"))
from metaprof_recorder.program.model_names import ModelNames  # noqa: E402


class Module:
    """As much of a module as is asked for."""

    def __init__(self, trained=True, **parts):
        self.parts, self.own = parts, [types.SimpleNamespace(requires_grad=trained)] if not parts else []

    def children(self):
        return self.parts.values()

    def named_modules(self, prefix=""):
        yield prefix, self
        for name, part in self.parts.items():
            yield from part.named_modules(f"{prefix}.{name}" if prefix else name)

    def modules(self):
        return (module for _, module in self.named_modules())

    def parameters(self):
        return (parameter for module in self.modules() for parameter in module.own)


class Loss(Module):
    def parameters(self):
        return iter(())


class Sources:
    """Functions of this file are the user's."""

    def kind(self, filename):
        return 0 if filename == __file__ else 2


TORCH = types.SimpleNamespace(nn=types.SimpleNamespace(Module=Module))


NAMES = ModelNames(TORCH, Sources(), lambda frame: frame.f_code.co_name == "run")
name_of = eval(compile("lambda root: NAMES.of(root)", "<a hook of torch>", "eval"))  # from no file of the user's


beside_others = eval(compile("lambda root: NAMES.of(root, True)", "<a hook of torch>", "eval"))


class ModelNamesTest(unittest.TestCase):
    def test_the_only_model_has_none(self):
        net, loss = Module(), Loss()
        self.assertEqual(name_of(net), "")
        self.assertIsNotNone(loss)

    def test_variables_name_several(self):
        generator, discriminator = Module(), Module()
        self.assertEqual([name_of(generator), name_of(discriminator)], ["generator", "discriminator"])

    def test_a_copy_that_is_not_trained_is_no_other_model(self):
        net, average = Module(), Module(trained=False)
        self.assertEqual([name_of(net), name_of(average)], ["", "average"])

    def test_one_that_is_trained_is_named_beside_others_that_have_run(self):
        teacher, student = Module(trained=False), Module()
        self.assertEqual([name_of(teacher), name_of(student)], ["teacher", ""])
        self.assertEqual(beside_others(student), "student")

    def test_attributes_elements_and_keys_name_them(self):
        trainer = types.SimpleNamespace(net=Module(), others=[Module()])
        self.assertEqual(name_of(trainer.net), "")
        nets = {"a": Module(), "b": Module()}
        self.assertEqual([name_of(nets["a"]), name_of(nets["b"]), name_of(trainer.net)], ["nets.a", "nets.b", "net"])

    def test_parts_of_a_module_that_does_not_run_itself(self):
        gan = Module(generator=Module(), discriminator=Module())
        self.assertEqual(name_of(gan.parts["generator"]), "generator")

    def test_the_only_part_of_a_wrapper_has_no_name(self):
        wrapper = Module(net=Module())
        self.assertEqual(name_of(wrapper.parts["net"]), "")

    def test_a_module_that_is_not_made_yet_is_none(self):
        self_of_a_constructor, net = Module.__new__(Module), Module()
        self.assertEqual(name_of(net), "")
        self.assertIsNotNone(self_of_a_constructor)

    def test_what_no_variable_holds_has_none(self):
        self.assertEqual(name_of(Module()), "")


if __name__ == "__main__":
    unittest.main()
