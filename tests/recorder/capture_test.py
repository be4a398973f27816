"""The capture of calls, without PyTorch: names of tensors, checkpointed regions, sources of dtypes, storages, what is not seen."""
import contextlib
import functools
import gc
import pathlib
import sys
import types
import unittest
import weakref
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"))
from metaprof_recorder.capture import capture  # noqa: E402
from metaprof_recorder.capture.calls import Calls, Name  # noqa: E402
from metaprof_recorder.capture.dtypes import DTypes  # noqa: E402
from metaprof_recorder.capture.observers.checkpoint import given_to  # noqa: E402
from metaprof_recorder.capture.operators import Operators  # noqa: E402
from metaprof_recorder.capture.refcounts import Held  # noqa: E402
from metaprof_recorder.capture.regions import Regions, keep_unused  # noqa: E402
from metaprof_recorder.capture.unseen import Unseen  # noqa: E402


class Named:
    def __init__(self, name, **members):
        self.name = name
        self.__dict__.update(members)

    def __str__(self):
        return self.name


class Dtype(Named):
    pass


class Tensor:
    def __init__(self, dtype, shape, stride=None, cuda=True):
        self.dtype, self.shape, self._stride, self.is_cuda = dtype, shape, stride, cuda

    def is_contiguous(self):
        return self._stride is None

    def stride(self):
        return self._stride


class EnvironmentTest(unittest.TestCase):
    def test_variables_that_decide_memory_are_in_the_text(self):
        fake = types.SimpleNamespace(__version__="2.11.0")
        captured = capture.Capture.__new__(capture.Capture)
        captured.torch, captured._warnings, captured._definitions = fake, [], []
        captured.unseen = types.SimpleNamespace(warnings=lambda: [])
        captured.program = types.SimpleNamespace(drops={}, calls=[0], lines=[])
        captured.regions, captured.functions = types.SimpleNamespace(values_before={}), types.SimpleNamespace(leaves={})
        with mock.patch.dict("os.environ", {"CUBLAS_WORKSPACE_CONFIG": ":16:8", "ANOTHER": "1"}, clear=True):
            lines = captured.text([], {}).splitlines()
        self.assertIn('environment CUBLAS_WORKSPACE_CONFIG ":16:8"', lines)
        self.assertFalse([line for line in lines if "ANOTHER" in line])


class Weak:
    """As much of a tensor as a name asks for."""
    requires_grad = False


class ExchangeTest(unittest.TestCase):
    def setUp(self):
        self.calls = Calls(True, 0)
        self.first, self.second, self.dead = Weak(), Weak(), []
        for number, tensor in enumerate((self.first, self.second)):
            name = self.calls.names[id(tensor)] = Name(tensor, lambda name: self.dead.append(name.numbers), self.calls, number)
            self.calls.used.append(name)
        self.calls.held.watch(self.calls.names[id(self.first)])
        del name

    def swap(self):
        self.assertEqual([weakref.getweakrefcount(one) for one in (self.first, self.second)], [0, 0])
        self.calls.drops["swapped"] = []

    def test_names_go_with_what_two_tensors_are(self):
        self.calls.exchange([self.first, self.second], self.dead.append, self.swap)
        self.assertIn("swapped", self.calls.drops)
        self.assertEqual(self.calls.names[id(self.first)].numbers, [1])
        self.assertEqual(self.calls.names[id(self.second)].numbers, [0])
        self.assertEqual([one() is self.second for one in self.calls.held._watched], [True])

    def test_they_stay_where_it_is_refused(self):
        with self.assertRaises(RuntimeError):
            self.calls.exchange([self.first, self.second], self.dead.append, mock.Mock(side_effect=RuntimeError))
        self.assertEqual(self.calls.names[id(self.first)].numbers, [0])
        self.assertEqual(self.calls.names[id(self.second)].numbers, [1])


class SelectiveTest(unittest.TestCase):
    def test_calls_whose_results_a_policy_keeps_are_numbered_by_operator(self):
        answers = iter([True, False, Named("PREFER_SAVE"), Named("MUST_RECOMPUTE"), True])
        caching = type("Caching", (), {})
        forward = caching()
        forward.policy_fn = lambda context, operator: next(answers)
        regions = Regions(None)
        contexts = regions.selective(lambda: (forward, "again"), caching)()
        self.assertEqual(contexts, (forward, "again"))
        for name in ("aten::mm", "aten::mm", "aten::mm", "aten::add.Tensor", "flex_attention"):
            forward.policy_fn(None, types.SimpleNamespace(name=lambda name=name: name))
        self.assertEqual(regions._kept, {"aten::mm": [0, 2], "higher_order::flex_attention": [0]})

    def test_contexts_of_another_kind_are_named(self):
        warnings = []
        regions = Regions(types.SimpleNamespace(warn=warnings.append))
        regions.selective(lambda: ("forward", "again"), int)()
        self.assertEqual(len(warnings), 1)


class GivenTest(unittest.TestCase):
    def test_a_function_holds_its_arguments_those_bound_to_it_and_variables_around_it(self):
        around, bound, given, named = (Tensor(None, ()) for _ in range(4))
        function = functools.partial(lambda x, **_: around, mask=bound)
        self.assertEqual(set(map(id, given_to(Tensor, function, (given, [3]), {"y": named}))), {id(one) for one in (around, bound, given, named)})


class Counted:
    """A tensor as its counts of references show it; what C++ holds is a reference more to its object."""

    def __init__(self, uses):
        self.uses = uses

    def _use_count(self):
        return self.uses


class Asked:
    """A tensor that says where its dtype is read."""

    def __init__(self, dtypes, dtype, number):
        self._dtypes, self._dtype, self._number = dtypes, dtype, number

    @property
    def dtype(self):
        self._dtypes.read(sys._getframe(1), self._dtype, self._number)
        return self._dtype


@unittest.skipUnless(hasattr((lambda: 0).__code__, "co_positions"), "before Python 3.11 the source of a call is its first line")
class DTypesTest(unittest.TestCase):
    """`call` stands for an operator that is given a dtype, and returns where the text says that it is from."""

    def setUp(self):
        self.float32, self.half = Dtype("torch.float32"), Dtype("torch.half")
        self.torch = types.SimpleNamespace(dtype=Dtype, float32=self.float32, half=self.half)
        self.dtypes = DTypes(self.torch, lambda file: 0)
        self.x, self.y = Asked(self.dtypes, self.float32, 0), Asked(self.dtypes, self.float32, 7)

    def call(self, *arguments, dtype=None):
        return self.dtypes.source(sys._getframe(1), self.float32)

    def test_the_source_names_it(self):
        torch = self.torch
        self.assertEqual(self.call(torch.float32), "named")
        self.assertEqual(self.call(1, dtype=torch.float32 if self.x else None), "named")

    def test_it_is_that_of_a_tensor(self):
        self.assertEqual(self.call(self.x.dtype), 0)
        self.assertEqual(self.call(self.call(self.torch.float32),
                                   self.y.dtype), 7, "what is named within an argument is not what the call is given")

    def test_a_variable_is_what_was_bound_to_it_last(self):
        one, other = self.x.dtype, 0
        one = self.y.dtype
        other = self.x.dtype
        self.assertEqual([self.call(one), self.call(other)], [7, 0])

    def test_an_argument_is_what_the_caller_gives(self):
        def outer(dtype):
            return inner(3, dtype=dtype)

        def inner(_, dtype):
            return self.call(dtype=dtype)

        self.assertEqual([outer(self.y.dtype), inner(3, self.x.dtype), inner(1, self.torch.float32)], [7, 0, "named"])

    def test_what_cannot_be_told_is_nothing(self):
        given, other = self.float32, Asked(self.dtypes, self.half, 3)
        self.assertIsNone(self.call(given))
        self.assertIsNone(self.call(other.dtype), "another dtype was read there")


class UnseenTest(unittest.TestCase):
    def test_what_is_not_in_the_program_is_named_with_its_share(self):
        requested = iter((1000, 1400, 1500, 2000))  # at the beginning, around a hook, at the end
        unseen = Unseen(types.SimpleNamespace(requested=lambda: next(requested)))
        unseen.begin()
        self.assertEqual(unseen.measured("hooks on saved tensors", lambda tensor: tensor + 1)(3), 4)
        unseen.end()
        self.assertEqual(unseen.warnings(), ["hooks on saved tensors: what they call is not in the program; 100 of 1000 bytes that the run requested "
                                             "(10.00 %)"])


class Storage:
    def __init__(self, address, device="cuda", size=24):
        self._cdata, self.device, self.nbytes = address, types.SimpleNamespace(type=device), lambda: size


class LookingIntoStorages:
    """As much of a capture as calls ask whose tensors look into storages."""
    running = open = True
    torch, tensors = types.SimpleNamespace(dtype=Dtype), types.SimpleNamespace(kind=Tensor)
    dispatch = types.SimpleNamespace(off=contextlib.nullcontext)

    def __init__(self, source):
        self.source, self.lines, self.drops, self.calls = source, [], {}, [0]
        self.now = self.values = self
        self.operators = Operators(self)
        self.operators.write = lambda text, _: self.lines.append(text)

    def looking_into(self, address):
        return self.source if address == 40 else None

    def use(self, tensor):
        return tensor.number

    def next_number(self):
        return 7

    def drop_held(self):
        pass

    def add(self, text):
        self.lines.append(text)


class SetTest(unittest.TestCase):
    def setUp(self):
        self.tensor, source = (types.SimpleNamespace(number=number, shape=(2, 3), stride=lambda: (3, 1), storage_offset=lambda: 5) for number in (1, 2))
        self.calls = LookingIntoStorages(source)

    def set(self, storage):
        given = self.tensor, storage, 5, (2, 3), (3, 1)
        self.assertIs(self.calls.operators._set_storage(lambda *_: self.tensor, given, {}), self.tensor)

    def test_a_storage_is_named_by_a_tensor_that_looks_into_it(self):
        for storage, named in ((Storage(40), "%2"), (Storage(41, device="cpu"), 'unknown("UntypedStorage")'), (Storage(41, size=0), 'unknown("UntypedStorage")')):
            self.calls.lines.clear()
            self.set(storage)
            self.assertEqual(self.calls.lines, [f"_ = aten::set_.source_Tensor_storage_offset(%1, {named}, 5, [2, 3], [3, 1])"])

    def test_a_storage_that_the_program_has_made_is_its_bytes_while_it_lives(self):
        storage = Storage(41)
        self.set(storage)
        self.set(storage)
        set_to_it = "_ = aten::set_.source_Tensor_storage_offset(%1, %7, 5, [2, 3], [3, 1])"
        self.assertEqual(self.calls.lines, ["%7: u8[24] = aten::empty.memory_format([24], dtype=u8, device=device(model))", set_to_it, set_to_it])
        self.assertEqual(self.calls.drops, {})
        del storage
        gc.collect()
        self.assertEqual(self.calls.drops, {0: [7]})


class Known:
    gone = None

    def __init__(self, tensor, last, number):
        self.tensor, self.last, self.number = tensor, last, number

    def __call__(self):
        return self.tensor


class GivenToModulesTest(unittest.TestCase):
    def test_what_no_call_has_taken_is_kept(self):
        used, unused, unknown = (Tensor(None, ()) for _ in range(3))
        names = {id(tensor): Known(tensor, last, number) for tensor, last, number in ((used, 5, 1), (unused, 2, 2))}
        written = []
        fake = types.SimpleNamespace(now=types.SimpleNamespace(names=names, grad=True, modules=[(4, {}, 3)]), call=written.append,
                                     values=types.SimpleNamespace(use=lambda tensor: names[id(tensor)].number))
        keep_unused(fake, [used, unused, unused, unknown], 3)
        self.assertEqual(written, ["step::keep([%2]) in m4"])


class HeldTest(unittest.TestCase):
    def test_what_only_cpp_holds_is_gone(self):
        watched = Held()
        tensor = Counted(uses=2)
        by_autograd = [tensor]
        reference = weakref.ref(tensor)
        watched.watch(reference)
        self.assertEqual(watched.gone(), [])
        del tensor
        self.assertEqual(watched.gone(), [reference])
        self.assertEqual(watched.gone(), [], "it is watched no longer")
        del by_autograd

    def test_what_only_the_program_holds_is_not(self):
        watched = Held()
        tensor = Counted(uses=1)
        watched.watch(weakref.ref(tensor))
        self.assertEqual(watched.gone(), [])
        del tensor
        self.assertEqual(watched.gone(), [], "its object is dead, which is told otherwise")


if __name__ == "__main__":
    unittest.main()
