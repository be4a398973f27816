"""The text of captured programs, without PyTorch: constants, facts of tensors, modules and lines, phases."""
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"))
from metaprof_recorder.program.sources import Sources  # noqa: E402
from metaprof_recorder.text import arguments, program_lines, program_phases  # noqa: E402
from metaprof_recorder.text.places import Places, short_name  # noqa: E402
from metaprof_recorder.text.program_lines import without_gone_sources  # noqa: E402


class Named:
    def __init__(self, name, **members):
        self.name = name
        self.__dict__.update(members)

    def __str__(self):
        return self.name


class Dtype(Named):
    pass


class Device(Named):
    pass


def torch():
    """As much of torch as the texts ask for."""
    names = (*arguments.MEMORY_FORMATS, *arguments.LAYOUTS)
    return types.SimpleNamespace(**{name: Named(name) for name in names}, dtype=Dtype, device=Device, Generator=type("Generator", (), {}),
                                 _C=types.SimpleNamespace(_cuda_getDevice=lambda: 1))


class Tensor:
    def __init__(self, dtype, shape, stride=None, cuda=True):
        self.dtype, self.shape, self._stride, self.is_cuda = dtype, shape, stride, cuda

    def is_contiguous(self):
        return self._stride is None

    def stride(self):
        return self._stride


class ConstantsTest(unittest.TestCase):
    def test_every_kind(self):
        fake = torch()
        constants = arguments.Constants(fake, fake._C._cuda_getDevice)
        for value, text in ((4, "4"), (True, "True"), (None, "None"), (0.5, "0.5"), (1e-05, "1e-05"), (3.0, "3.0"), (float("inf"), "inf"),
                            ("a b", '"a b"'), ("mean", '"mean"'), (1 + 2j, "complex(1.0, 2.0)"), ([1, 2], "[1, 2]"), ((True, False), "[True, False]"),
                            (Dtype("torch.bfloat16"), "bf16"), (Dtype("torch.quint8"), 'unknown("torch.quint8")'),
                            (fake.channels_last, "2"), (fake.preserve_format, "1"), (fake.strided, "0"), (fake.Generator(), "generator"),
                            (Device("cpu", type="cpu", index=None), "device(cpu)"), (Device("cuda", type="cuda", index=None), "device(model)"),
                            (Device("cuda:1", type="cuda", index=1), "device(model)"), (Device("cuda:0", type="cuda", index=0), "device(cuda:0)"),
                            (Device("meta", type="meta", index=None), 'unknown("meta")'), (object(), 'unknown("object")')):
            self.assertEqual(constants.text(value), text)


class FactsTest(unittest.TestCase):
    def test_what_is_not_usual_is_said(self):
        facts = arguments.Facts()
        self.assertEqual(facts.of(Tensor("torch.float32", (2, 3))), "f32[2,3]")
        self.assertEqual(facts.of(Tensor("torch.int64", (), cuda=False)), "i64[] on cpu")
        self.assertEqual(facts.of(Tensor("torch.float32", (2, 3), (1, 2))), "f32[2,3](1,2)")
        self.assertIsNone(facts.of(Tensor("torch.qint8", (2,))))


class PlacesTest(unittest.TestCase):
    def test_each_is_written_once_before_its_first_use(self):
        lines = []
        places = Places(lines.append, Sources("/no/torch"))
        outer = places.scope(0, "", 0)
        inner = places.scope(outer, "layers.0", 0)
        self.assertEqual((outer, inner), (1, 2))
        self.assertEqual(places.scope(outer, "layers.0", 1), 3)
        self.assertEqual(places.scope(outer, "layers.0", 0), 2)
        self.assertEqual(lines, ['scope m1 = ""', "scope m2 = layers.0 in m1", "scope m3 = layers.0 key layers.0@1 in m1"])

    def test_a_line_of_the_program(self):
        lines = []
        places = Places(lines.append, Sources("/no/torch"))
        numbers = [places.stack(sys._getframe()) for _ in range(2)]
        self.assertEqual(numbers, [1, 1])
        self.assertRegex(lines[0], r"^file f1 = \".*text_test.py\"$")
        self.assertRegex(lines[1], r'^line l1 = f1 \d+ ("<listcomp>"|test_a_line_of_the_program) "numbers = \[places')
        self.assertEqual(lines[2:], ["stack s1 = l1"])


class ShortNameTest(unittest.TestCase):
    def test_folders_of_a_machine_are_left_out(self):
        for file, name in ((f"{pathlib.Path.cwd()}/a/train.py", "a/train.py"), ("/opt/venv/lib/python3.11/site-packages/timm/train.py", "timm/train.py"),
                           ("/else/train.py", "/else/train.py")):
            self.assertEqual(short_name(file), name)


class PhasesTest(unittest.TestCase):
    def test_cuts_become_phases(self):
        phases = program_phases.Phases([("setup", 0, 1, 2), ("forward", 0, 3, 3), ("backward", 0, 4, 4)])
        lines = [phases.line(cut) for cut in range(1, 7)]
        self.assertEqual(lines, [['step::phase("setup", 0, -1)'], [], ['step::phase("forward", 0, -1)'], ['step::phase("backward", 0, -1)'],
                                 ["step::pause()"], []])

    def test_micro_batches_are_numbered(self):
        phases = program_phases.Phases([("forward", 1, 1, 1), ("backward", 1, 2, 2), ("forward", 1, 3, 3), ("backward", 1, 4, 4), ("optimizer", 1, 5, 5)])
        lines = [phases.line(cut)[0] for cut in range(1, 6)]
        self.assertEqual(lines, ['step::phase("forward", 1, 0)', 'step::phase("backward", 1, 0)', 'step::phase("forward", 1, 1)',
                                 'step::phase("backward", 1, 1)', 'step::phase("optimizer", 1, -1)'])


class LinesTest(unittest.TestCase):
    def test_drops_stand_behind_their_calls_and_those_of_what_a_region_was_given_behind_its_last(self):
        lines = ["a", "checkpoint {", "b", "}", "c"]
        program = types.SimpleNamespace(lines=lines, calls=[0, 2, 4], drops={0: [5], 1: [0, 7], 2: [6]})
        text = program_lines.text(program, [("forward", 0, 1, 1)], [], {1: 3}, types.SimpleNamespace(leaves={}))
        self.assertEqual(text.splitlines(), ['step::phase("forward", 0, -1)', "a drop %5", "checkpoint {", "b drop %7, %0", "}", "c drop %6"])


class GoneSourcesTest(unittest.TestCase):
    def test_a_dtype_whose_tensor_has_been_dropped_has_no_source(self):
        # dtype = x.dtype; y = x + b; del x; y.to(dtype)
        lines = ["%2: f32[4] = aten::add.Tensor(%0, %1) in m9 drop %1, %0", "%3: f32[4] = aten::to.dtype(%2, f32) in m9 dtype_of %0 drop %2"]
        self.assertEqual(list(without_gone_sources(lines)), [lines[0], "%3: f32[4] = aten::to.dtype(%2, f32) in m9 drop %2"])

    def test_one_that_goes_with_the_call_has(self):
        lines = ["%3: f32[4] = aten::to.dtype(%2, f32) dtype_of %2 drop %2", "%4: f32[4] = aten::to.dtype(%3, f32) dtype_of %3"]
        self.assertEqual(list(without_gone_sources(lines)), lines)


if __name__ == "__main__":
    unittest.main()
