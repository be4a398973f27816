"""From the events of the profiler and of the allocator to the text of a trace."""
import ctypes
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "capture/recorder"))
from metaprof_recorder.program.sources import Sources  # noqa: E402
from metaprof_recorder.requests.items import Begin, End, Memory  # noqa: E402
from metaprof_recorder.requests.matching import matched  # noqa: E402
from metaprof_recorder.requests.operators import _inputs, nested  # noqa: E402
from metaprof_recorder.requests.trace import Writer  # noqa: E402
from metaprof_recorder.storages.saved_tensors import Node  # noqa: E402
from metaprof_recorder.text.names import quoted  # noqa: E402

USER = [{"filename": "/x/site-packages/torch/nn/functional.py", "line": 5, "name": "linear"}, {"filename": "/me/train.py", "line": 14, "name": "main"}]


class Events:
    """Writes both recorders' events as a program would cause them."""

    def __init__(self):
        self.items, self.entries, self.time = [], [], 1_000_000

    def begin(self, name, kind="operator", sequence=-1, inputs=()):
        self.items.append(Begin(name, kind, sequence, inputs, self.time))

    def end(self):
        self.items.append(End(self.time))

    def cut(self, number):
        self.begin(f"metaprof cut {number}", "cut")
        self.end()

    def take(self, address, count, frames=(), seen=True):
        self._both("alloc", address, count, frames, seen)

    def give(self, address, count, seen=True, at_once=True):
        self._both("free_requested", address, count, (), seen)
        if at_once:
            self.entries.append({"action": "free_completed", "addr": address, "size": count, "stream": 0, "frames": [], "time_us": self.time // 1000})

    def release(self):
        self.time += 5000
        self.entries.append({"action": "segment_free", "addr": 0, "size": 2 << 20, "stream": 0, "frames": [], "time_us": self.time // 1000})

    def _both(self, action, address, count, frames, seen):
        self.time += 5000
        if seen:
            self.items.append(Memory(address, count if action == "alloc" else -count, 0, self.time))
        self.entries.append({"action": action, "addr": address, "size": count, "stream": 0, "frames": list(frames), "time_us": self.time // 1000})


def writer(events, rows, tags=(), kept=()):
    matches = matched(events.items, events.entries, 0, [(0, events.time)])
    return Writer(events.items, events.entries, matches, rows, list(tags), Sources("/x/site-packages/torch"), kept)


STEP = [("setup", 0, 1, 1), ("forward", 0, 2, 2), ("backward", 0, 3, 3)]


class TraceTest(unittest.TestCase):
    def test_without_a_backward_the_graph_says_what_is_kept_and_by_its_earliest_node(self):
        events = Events()
        events.cut(1)
        events.take(0x200, 128)  # kept by two nodes
        events.take(0x300, 256)  # kept by nobody
        events.cut(2)
        events.give(0x200, 128)
        first, second = Node("MmBackward0", 7), Node("ReluBackward0", 8)
        kept = [(2, 0x200, 0, first), (2, 0x200, 0, second)]
        text = writer(events, [("setup", 0, 1, 1), ("forward", 0, 2, 3)], kept=kept).text()
        self.assertIn('save 1 MmBackward0#1\nloss MmBackward0#1\n', text)
        self.assertNotIn("Relu", text)
        self.assertNotIn("save 2", text)
        self.assertNotIn("MmBackward0", writer(events, STEP, kept=kept).text())  # there the backward says it

    def a_step(self):
        events = Events()
        events.take(0x100, 64, USER)  # a parameter
        events.cut(1)
        events.begin("metaprof module ", "module")
        events.begin("metaprof module fc", "module")
        events.begin("aten::linear")
        events.begin("aten::addmm", sequence=7)
        events.take(0x200, 32, USER)
        events.end(), events.end(), events.end(), events.end()
        events.cut(2)
        events.begin("AddmmBackward0", "node", sequence=7)
        events.begin("aten::mm")
        events.take(0x300, 64)
        events.end()
        events.give(0x200, 32)
        events.end()
        events.cut(3)
        tags = [(1, 0x100, 0, "parameter", "fc.weight", "f32[4,4]", True), (3, 0x300, 0, "gradient", "fc.weight", "f32[4,4]", False)]
        return writer(events, STEP, tags)

    def test_what_goes_from_node_to_node_is_the_backward_s(self):
        hook = [{"filename": "/x/site-packages/torch/distributed/fsdp/group.py", "line": 5, "name": "gather"}, *USER]
        events = Events()
        events.cut(1)
        events.cut(2)
        for node, given in ("First", 0x100), ("Second", 0x200):
            events.begin(node, "node", 7)
            events.begin("aten::mul")
            events.take(given, 128, USER[1:])
            events.take(given + 1, 64, USER[1:])  # what the node computes with
            events.give(given + 1, 64)
            events.end()
            events.take(given + 2, 32, hook)
            events.begin("aten::relu", sequence=9)  # recomputed, for a graph
            events.take(given + 3, 16, USER[1:])
            events.end()
            if node == "Second":
                for before, count in (0x100, 128), (0x102, 32), (0x103, 16):
                    events.give(before, count)
            events.end()
        for after, count in (0x202, 32), (0x203, 16):
            events.give(after, count)
        events.cut(3)
        found = {storage.address: (storage.held_by, storage.held_as) for storage in writer(events, STEP).storages if storage.held_by}
        self.assertEqual(found, {0x100: ("the backward, between its nodes", "gradient"), 0x102: ("gather (torch/distributed/fsdp/group.py:5)", None),
                                 0x202: ("gather (torch/distributed/fsdp/group.py:5)", None)})

    def test_casts_of_parameters_are_told_from_what_a_graph_keeps(self):
        events = Events()
        events.take(0x100, 512)
        events.cut(1)
        for source, made in (0x100, 0x200), (0x300, 0x400):
            events.begin("aten::_to_copy", inputs=[("float", (128,), "cuda", source)])
            events.take(made, 256)
            events.end()
        events.cut(2)
        tags = [(1, 0x100, 0, "parameter", "fc.weight", "f32[128]", True)]
        found = {storage.address: (storage.held_by, storage.held_as) for storage in writer(events, STEP, tags).storages if storage.held_by}
        self.assertEqual(found, {0x200: ("copies of parameters in another dtype, made in the forward", "cached_copy")})

    def test_a_step(self):
        self.assertEqual(self.a_step().text(), """\
parameter fc.weight f32[4,4]g@1
# phase setup
+ 1 64 parameter name=fc.weight
# phase forward step 0
# enter
# enter fc
> aten::linear
> aten::addmm
+ 2 32 activation
<
<
# leave fc
# leave
node #1 AddmmBackward0 module=fc
save 2 AddmmBackward0#1
loss AddmmBackward0#1
# phase backward step 0
> evaluate AddmmBackward0#1
> aten::mm
+ 3 64 gradient name=fc.weight
< f32[4,4]@3
- 2
<
# pause
""")

    def test_lines_are_the_users_own(self):
        self.assertEqual(self.a_step().lines[1], ("/me/train.py:14", "main"))

    def test_the_backward_has_the_line_of_the_forward_that_made_the_node(self):
        self.assertEqual(self.a_step().lines[3], ("/me/train.py:14", "main"))

    def test_operators_without_requests_are_left_out(self):
        events = Events()
        events.begin("aten::view"), events.end()
        events.take(0x100, 8)
        self.assertEqual(writer(events, STEP).text(), "# phase setup\n+ 1 8 temporary\n")

    def test_a_request_that_the_profiler_did_not_see_is_there_without_an_operator(self):
        events = Events()
        events.begin("aten::empty")
        events.take(0x100, 8)
        events.end()
        events.take(0x200, 16, seen=False)
        found = writer(events, STEP)
        self.assertEqual(found.text(), "# phase setup\n> aten::empty\n+ 1 8 temporary\n<\n+ 2 16 temporary call=0\n")
        self.assertEqual(found.unmatched, 1)

    def test_an_address_that_is_used_again_is_another_storage(self):
        events = Events()
        events.take(0x100, 8), events.give(0x100, 8), events.take(0x100, 8)
        self.assertEqual(writer(events, STEP).text(), "# phase setup\n+ 1 8 temporary\n- 1\n+ 2 8 temporary\n")

    def test_the_next_model_takes_the_place_of_one_that_is_gone(self):
        events = Events()
        events.take(0x100, 40), events.cut(1), events.give(0x100, 40), events.take(0x100, 80), events.cut(2)
        tags = [(cut, 0x100, 0, "parameter", "w", word, True) for cut, word in ((1, "f32[10]"), (2, "f32[20]"))]
        head = [line for line in writer(events, STEP, tags).text().splitlines() if line.startswith("parameter")]
        self.assertEqual(head, ["parameter w f32[20]g@2"])

    def test_parameters_of_one_storage_are_all_there(self):
        events = Events()
        events.take(0x100, 40), events.cut(1)
        tags = [(1, 0x100, 0, "parameter", name, word, True) for name, word in (("w", "f32[6]"), ("b", "f32[4]"))]
        head = [line for line in writer(events, STEP, tags).text().splitlines() if line.startswith("parameter")]
        self.assertEqual(head, ["parameter w f32[6]g@1", "parameter b f32[4]g@1"])

    def test_a_return_that_waits_for_another_stream(self):
        events = Events()
        events.take(0x100, 8), events.give(0x100, 8, at_once=False)
        self.assertEqual(writer(events, STEP).text(), "# phase setup\n+ 1 8 temporary\nrecord_stream 1 1\n- 1\n")

    def test_what_another_stream_uses_is_lent(self):
        events = Events()
        events.take(0x100, 8), events.take(0x200, 16), events.take(0x300, 24)
        events.begin("aten::record_stream", inputs=[("float", (2,), "cuda", 0x200)])
        events.end()
        events.give(0x300, 24)
        events.give(0x100, 8, at_once=False)  # no operator says so, but the allocator waits
        events.take(0x100, 8)
        self.assertEqual([storage.lent for storage in writer(events, STEP).storages], [True, True, False, False])

    def test_workspaces_of_matrix_products_are_named(self):
        events = Events()
        events.begin("aten::mm")
        events.take(0x100, 33554432)
        self.assertIn('+ 1 33554432 workspace name="cuBLAS workspace"', writer(events, STEP).text())

    def test_what_no_operator_asks_for_is_known_by_the_library_s_function(self):
        events = Events()
        events.take(0x100, 8, frames=[{"filename": "/x/site-packages/torch/nn/parallel/distributed.py", "line": 9, "name": "DDP._init"}, *USER])
        events.take(0x200, 8, frames=USER[1:])
        self.assertEqual(writer(events, STEP).text(), '# phase setup\n+ 1 8 temporary name=DDP._init\n+ 2 8 temporary\n')

    def test_a_workspace_of_one_call_is_named(self):
        events = Events()
        events.begin("aten::addmm")
        events.take(0x100, 1 << 20), events.give(0x100, 1 << 20)
        self.assertIn('+ 1 1048576 workspace name="cuBLASLt workspace"', writer(events, STEP).text())

    def test_results_of_products_are_no_workspaces_of_whatever_size(self):
        events = Events()
        events.begin("aten::mm")
        events.take(0x100, 33554432), events.take(0x200, 33554432)
        events.end()
        events.begin("aten::relu", inputs=[("torch.float32", [2048, 4096], "cuda", 0x100)])
        events.end()
        events.give(0x200, 33554432)  # dropped after the call
        self.assertNotIn("workspace", writer(events, STEP).text())

    def test_reads_of_device_data_are_counted(self):
        events = Events()
        for device in ("cuda", "cuda", "cpu"):
            events.begin("aten::item")
            events.begin("aten::_local_scalar_dense", inputs=[("torch.float32", [], device, 0x100)])
            events.end(), events.end()
        self.assertEqual(writer(events, STEP).reads, {("aten::_local_scalar_dense", ""): 2})

    def test_a_return_that_the_profiler_did_not_see_stands_before_the_next_cut(self):
        events = Events()
        events.take(0x100, 8)
        events.give(0x100, 8, seen=False)
        events.time += 5000
        events.cut(1)
        events.take(0x200, 8)
        self.assertEqual(writer(events, STEP).text(), "# phase setup\n+ 1 8 temporary\n- 1\n# phase forward step 0\n+ 2 8 activation\n")

    def test_segments_that_go_back_to_the_device_are_an_emptied_cache(self):
        events = Events()
        events.take(0x100, 8), events.give(0x100, 8)
        events.release(), events.release()
        events.time += 5000
        events.cut(1)
        events.take(0x200, 8)
        self.assertEqual(writer(events, STEP).text(), "# phase setup\n+ 1 8 temporary\n- 1\n> step::empty_cache\n<\n"
                                                      "# phase forward step 0\n+ 2 8 activation\n")

    def test_words_with_blanks_are_quoted(self):
        self.assertEqual(quoted('a "b"\n'), '"a \\"b\\"\\n"')
        self.assertEqual(quoted("fc.weight"), "fc.weight")


class Event:
    """An event of the profiler's tree."""

    def __init__(self, begin, end, *children):
        self.start_time_ns, self.end_time_ns, self.children = begin, end, children


class NestedTest(unittest.TestCase):
    @staticmethod
    def times(tree):
        return [(node.begin, NestedTest.times(node.children)) for node in tree]

    def test_events_stand_in_what_is_open_when_they_begin(self):
        # two steps; the second one's backward (25, in the thread that was first seen at 15) is handed out within the first
        backward = Event(25, 27, Event(26, 26))
        tree = nested([Event(10, 20, Event(15, 17), backward), Event(21, 30, Event(22, 23), Event(28, 29))])
        self.assertEqual(self.times(tree), [(10, [(15, [])]), (21, [(22, []), (25, [(26, [])]), (28, [])])])

    def test_what_begins_when_nothing_is_open_is_outermost(self):
        self.assertEqual(self.times(nested([Event(10, 20, Event(25, 26)), Event(30, 40)])), [(10, []), (25, []), (30, [])])


class SourcesTest(unittest.TestCase):
    def test_a_library_is_named_where_there_is_no_line_of_the_user(self):
        sources = Sources("/x/site-packages/torch")
        frames = [{"filename": "/x/site-packages/torch/nn/functional.py", "line": 1, "name": "f"}, {"filename": "/x/site-packages/timm/train.py", "line": 2, "name": "g"}]
        self.assertEqual(sources.of_frames(frames), ("/x/site-packages/timm/train.py:2", "g"))

    def test_no_frames(self):
        self.assertEqual(Sources("/x/torch").of_frames([]), ("", ""))

    def test_lines_that_run_are_those_of_libraries_and_of_the_users_function_that_called_them(self):
        library = {}
        exec(compile("def call(function):\n    return list(function())", "/x/site-packages/lib/a.py", "exec"), library)  # noqa: S102
        lines = library["call"](Sources("/x/torch").lines)
        self.assertEqual(lines[0], "/x/site-packages/lib/a.py:2")
        self.assertEqual(len(lines), 2)
        self.assertTrue(lines[1].startswith(f"{__file__}:"))


class Metadata:
    """Of a tensor, as PyTorch gives it. Where there is no memory it gives None, which then has one reference less."""
    dtype, sizes, device = "f32", [2], types.SimpleNamespace(type="cuda")

    def __init__(self, pointer):
        self._pointer = pointer

    @property
    def storage_data_ptr(self):
        if self._pointer is None and sys.version_info < (3, 12):
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(None))
        return self._pointer


class InputsTest(unittest.TestCase):
    def test_none_is_not_used_up(self):
        fields = types.SimpleNamespace(inputs=[Metadata(None) for _ in range(100)] + [Metadata(64), 3, None])
        before = sys.getrefcount(None)
        for _ in range(100):
            self.assertEqual(_inputs(fields), [("f32", [2], "cuda", 64)])
        self.assertLess(abs(sys.getrefcount(None) - before), 100)


if __name__ == "__main__":
    unittest.main()
