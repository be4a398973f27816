"""Every request of memory, with the operator, the module and the line that made it.

Two of torch's own recorders are joined. The allocator's history has each request and return with the bytes that were asked for, its
stream and the Python frames; the profiler has the operators, nested, the nodes that backward evaluates, and among them the
addresses that the allocator gave out and took back. Modules and cuts between phases are ranges that hooks put into the profiler.
Both are begun together at the initialisation of CUDA and end together; the profiler is not begun again, because it does not
outlive ranges that are open meanwhile.
"""
import bisect
import ctypes
import os
import threading
from collections import defaultdict, deque

from metaprof_recorder import trace
from metaprof_recorder.items import Begin, End, Memory

MOST_REQUESTS = 4_000_000
LOG_ERRORS = 2  # c10's log levels: 0 information, 1 warnings, 2 errors
MODULE, CUT = "metaprof module ", "metaprof cut "


class History:
    """`begin` and `end` once each; `mark`, `enter`, `leave` cost nothing when it does not run."""

    def __init__(self, torch, wrappers):
        self._torch = torch
        self._wrappers = wrappers
        self._range = self._disable = None
        self._log_level = None
        self._thread = None      # whose profiler it is
        self._abandoned = False
        self.running = False
        self.begun = False
        self.cut_short = False  # ended before its time: the program has a profiler of its own

    def begin(self):
        if self.begun:
            return
        torch = self._torch
        from torch._C._autograd import _disable_profiler, _enable_profiler, _prepare_profiler
        from torch._C._profiler import ProfilerActivity, ProfilerConfig, ProfilerState, _ExperimentalConfig, _RecordFunctionFast
        self.begun = True
        self._thread = threading.get_ident()
        # state, shapes, memory, stacks, FLOPs, modules
        config = ProfilerConfig(ProfilerState.KINETO, True, True, False, False, False, _ExperimentalConfig())
        _prepare_profiler(config, {ProfilerActivity.CPU})
        torch.cuda.memory._record_memory_history("all", context="alloc", stacks="python", max_entries=MOST_REQUESTS)
        self._quiet(True)
        _enable_profiler(config, {ProfilerActivity.CPU}, set())
        self._range = _RecordFunctionFast
        self._disable = _disable_profiler  # by the end the program may have thrown torch out of sys.modules
        self.running = True

    def _quiet(self, on):
        """While the profiler runs torch's C++ log says only errors: it would warn of every host block that is older than the profiler."""
        if on and "TORCH_CPP_LOG_LEVEL" in os.environ:
            return
        try:
            library = ctypes.CDLL(os.path.join(os.path.dirname(self._torch.__file__), "lib", "libc10.so"))
            level = ctypes.c_int.in_dll(library, "FLAGS_caffe2_log_level")
        except (OSError, ValueError):
            return
        if on:
            self._log_level, level.value = level.value, LOG_ERRORS
        elif self._log_level is not None:
            level.value = self._log_level

    def mark(self, number):
        if self.running:
            with self._wrappers.seen(), self._range(f"{CUT}{number}"):
                pass

    def enter(self, path):
        if not self.running:
            return None
        opened = self._range(MODULE + path)
        with self._wrappers.seen():
            opened.__enter__()
        return opened

    def leave(self, opened):
        if opened is not None:
            with self._wrappers.seen():
                opened.__exit__(None, None, None)

    def end(self):
        """What was recorded; None if it did not run."""
        if not self.running:
            return None
        self.running = False
        result = self._disable()
        self._quiet(False)
        snapshot = self._torch.cuda.memory._snapshot()
        self._torch.cuda.memory._record_memory_history(None)
        return Found(flat(result.experimental_event_tree()), [_whole_releases(entries, snapshot) for entries in snapshot["device_traces"]])

    def abandon(self):
        """Keeps nothing of what was recorded. The profiler of the thread that began it runs on: only that thread can end it (`close`)."""
        self.running, self._abandoned = False, True
        self._quiet(False)
        self._torch.cuda.memory._record_memory_history(None)

    def close(self):
        """Ends a profiler that was abandoned, if this is its thread: one that runs when the process ends crashes it."""
        if self._abandoned and threading.get_ident() == self._thread:
            self._abandoned = False
            self._disable()

    def give_way_to_program(self, recorder):
        """A thread has one profiler: the program's own comes first, and what was recorded until then is kept."""
        profiler = self._torch.autograd.profiler
        for name in ("_prepare_profiler", "_enable_profiler"):
            original = getattr(profiler, name, None)
            if original is None:
                continue

            def call(*arguments, _original=original, **options):
                if self.running and os.getpid() == recorder.pid:
                    self.cut_short = True
                    recorder.write_events()
                return _original(*arguments, **options)

            setattr(profiler, name, call)


def _whole_releases(entries, snapshot):
    """The entries without those of segments that went back to the device, where these may be some of the cached ones only: what the
    settings make the allocator give back by itself its model gives back, too."""
    settings = snapshot.get("allocator_settings", {})
    if settings.get("max_split_size", -1) < 0 and not settings.get("garbage_collection_threshold"):
        return entries
    return [entry for entry in entries if entry["action"] not in trace.RELEASES]


def _kind(name):
    if name.startswith("autograd::engine::evaluate_function: "):
        return "node"
    if name.startswith(MODULE):
        return "module"
    if name.startswith(CUT):
        return "cut"
    return "operator" if "::" in name and not name.startswith("torch::autograd::") and " " not in name else "other"


def _inputs(fields):
    found = []
    for value in fields.inputs:
        pointer = getattr(value, "storage_data_ptr", None)
        if pointer:
            found.append((value.dtype, value.sizes, value.device.type, pointer))
    return found


class Node:
    """An event of the profiler, and those inside it by time."""
    __slots__ = ("event", "begin", "end", "children")

    def __init__(self, event):
        self.event, self.begin, self.end = event, event.start_time_ns, max(event.start_time_ns, event.end_time_ns)
        self.children = []

    def __lt__(self, other):
        return self.begin < other.begin


def nested(roots):
    """The profiler's tree, with every event inside what was open when it began.

    What autograd's thread does the profiler puts into whatever was open when that thread was first seen, even after its end: all
    backwards of a program whose first one was called within an optimizer's step (LBFGS) would stand in that step."""
    tree, late = [], []
    waiting = [(tree, None, roots)]
    while waiting:
        place, end, events = waiting.pop()
        for event in events:
            node = Node(event)
            (late if end is not None and node.begin > end else place).append(node)
            waiting.append((node.children, node.end, event.children))
        place.sort()
    places = [(_around(node, tree), node) for node in late]
    for place, node in places:
        place.append(node)
    for place in {id(place): place for place, _ in places}.values():
        place.sort()
    return tree


def _around(node, tree):
    """The children of the innermost event that is open when the node begins."""
    while True:
        index = bisect.bisect_right(tree, node) - 1
        if index < 0 or tree[index].end <= node.begin:
            return tree
        tree = tree[index].children


def flat(roots):
    """A profiler's tree as a list of Begin, End and Memory of CUDA devices, in the order in which they happened."""
    items = []
    stack = [(None, iter(nested(roots)))]
    while stack:
        around, inner = stack[-1]
        node = next(inner, None)
        if node is None:
            stack.pop()
            if around is not None:
                items.append(End(around.end))
            continue
        event = node.event
        fields = event.extra_fields
        if hasattr(fields, "alloc_size"):
            if fields.device.type == "cuda":
                items.append(Memory(fields.ptr, fields.alloc_size, fields.device.index or 0, node.begin))
        elif hasattr(fields, "sequence_number"):
            kind = _kind(event.name)
            name = event.name.partition(": ")[2] if kind == "node" else event.name
            items.append(Begin(name, kind, fields.sequence_number, _inputs(fields) if kind == "operator" else (), node.begin))
            stack.append((node, iter(node.children)))
        # of other kinds of events (Python calls, garbage collection) there are none with this configuration
    return items


class Found:
    """`items`: of the profiler; `traces`: of the allocator, a list of entries for each device."""

    def __init__(self, items, traces):
        self.items = items
        self.traces = traces

    def by_device(self):
        for device, entries in enumerate(self.traces):
            if any(entry["action"] == "alloc" for entry in entries):
                yield device, (self.items, entries)


MOST_APART = 200  # microseconds between the two recorders' times of one request, where their numbers differ


def matched(items, entries, device):
    """For each of the allocator's entries that gives out or takes back an address: the index of the profiler's item, or None.

    The profiler does not have all of them: those of other threads are missing, and returns outside every operator."""
    waiting = defaultdict(deque)
    for index, item in enumerate(items):
        if isinstance(item, Memory) and item.device == device:
            waiting[item.address, item.bytes > 0].append(index)
    asked = defaultdict(int)
    for entry in entries:
        if entry["action"] in trace.REQUESTS:
            asked[entry["addr"], entry["action"] == "alloc"] += 1
    exact = {key for key, count in asked.items() if len(waiting.get(key, ())) == count}
    result = []
    for entry in entries:
        index = None
        if entry["action"] in trace.REQUESTS:
            key = entry["addr"], entry["action"] == "alloc"
            queue = waiting.get(key)
            while queue:
                apart = items[queue[0]].time // 1000 - entry["time_us"]
                if key in exact or abs(apart) <= MOST_APART:
                    index = queue.popleft()
                    break
                if apart > 0:
                    break
                queue.popleft()
        result.append(index)
    return result


def write(recorder, found, device):
    """Writes the requests of one device as the text of a trace, the lines beside it, and a row for each kind of reading."""
    items, entries = found
    path = recorder.output.path(f"events-{device}", ".trace")
    lines = trace.Writer(items, entries, matched(items, entries, device), recorder.rows,
                         [tag for tag in recorder.tags.found if tag[2] == device], recorder.sources)
    with open(path, "w", encoding="utf-8") as file:
        file.write(lines.text())
    with open(path.replace(".trace", ".lines"), "w", encoding="utf-8") as file:
        file.writelines(f"{storage} {line} {function}\n" for storage, (line, function) in sorted(lines.lines.items()) if line)
    recorder.output.write("events", device=device, file=os.path.basename(path), requests=lines.requests, unmatched=lines.unmatched)
    if not recorder.reads.listening:
        for (operator, line), count in sorted(lines.reads.items()):
            recorder.output.write("data_read", device=device, op=operator, line=line, count=count, answered="device")
