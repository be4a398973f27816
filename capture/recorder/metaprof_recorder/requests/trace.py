"""Writes the requests of memory of one device as the text of a trace (meta/trace/text.h of metaprof describes it).

Storages are numbered in the order of their birth. First the events are gone through to learn what each storage is for (tags,
when it is freed and by whom), then they are written.
"""
from metaprof_recorder.requests.items import End, Memory
from metaprof_recorder.storages.holders import BY_GRAPH
from metaprof_recorder.text.names import dtype_word, quoted

# Operators that copy data from the device to the host, so that the program sees it.
READS = {
    "aten::_local_scalar_dense", "aten::nonzero", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive", "aten::masked_select",
    "aten::equal", "aten::bincount", "aten::repeat_interleave", "aten::_linalg_check_errors", "aten::histc",
}
PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::mv", "aten::addmv", "aten::dot", "aten::_addmm_activation", "aten::_scaled_mm"}

IN_BACKWARD = "the backward, between its nodes"
COPIES = "copies of parameters in another dtype, made in the forward"  # as autocast has them

RELEASES = ("segment_free", "segment_unmap")  # a cached segment goes back to the device
REQUESTS = ("alloc", "free_requested")


class Storage:
    __slots__ = ("number", "bytes", "stream", "category", "name", "word", "phase", "cut", "freed_by", "freed_cut", "line", "shared", "address", "product", "asked_by", "freed_within", "held_by", "held_as", "made_in", "made_by", "asked_in", "is_copy", "lent", "state")

    def __init__(self, number, address, bytes_, stream, phase, cut, line):
        self.number, self.address, self.bytes, self.stream, self.phase, self.cut, self.line = number, address, bytes_, stream, phase, cut, line
        self.category = self.name = self.word = self.freed_by = self.freed_cut = None
        self.product = None  # the operator that asked for it, if it multiplies matrices
        self.asked_by = None  # without an operator: the function of a library that was running, "DistributedDataParallel._ddp_init_helper"
        self.shared = self.freed_within = self.is_copy = False
        self.state = None  # name -> line of each parameter or buffer that lies in it: a recurrent network's lie in one storage
        self.lent = False  # to another stream: on a device it comes back when that stream is done
        self.held_by = ""  # the program's variable that leads to it (storages/holders.py)
        self.held_as = None
        self.made_in = ""  # a library's function that asked for it
        self.asked_in = ""  # in a backward: the function of PyTorch that a hook runs (FSDP gathers a group of parameters)
        self.made_by = None  # the node of a backward, if what it makes needs no graph of its own


class Frame:
    """What is around an event. `made`: storages that an operator has made."""
    __slots__ = ("begin", "written", "made")

    def __init__(self, begin):
        self.begin, self.written, self.made = begin, False, []


class Writer:
    """`rows`: (phase, step, first cut, last cut) of the phases; `tags` and `kept`: see storages/tags.py; `matches`: see matching.matched; `held` and
    `held_at_ends`: {address: Holder} by cut, and for each time that memory ran out."""

    def __init__(self, items, entries, matches, rows, tags, sources, kept=(), held=None, held_at_ends=()):
        self.held, self.held_at_ends = held or {}, iter(held_at_ends)
        self.items, self.entries, self.matches, self.sources = items, entries, matches, sources
        self.phase_of = {}
        steps = {}
        for phase, step, first, last in rows:
            micro = None
            if phase in ("forward", "backward"):
                micro = steps.setdefault((phase, step), 0)
                steps[phase, step] += 1
            for cut in range(first, last + 1):
                self.phase_of[cut] = (phase, step, micro, first)
        self.accumulates = {step for (phase, step), count in steps.items() if phase == "backward" and count > 1}
        self.tags = {}
        for tag in tags:
            self.tags.setdefault(tag[0], []).append(tag)
        # Without a backward the graphs of forwards say what is kept.
        self.kept = {}
        for cut, address, _, node in () if any(row[0] == "backward" for row in rows) else kept:
            self.kept.setdefault(cut, []).append((address, node))
        self.kept_storages = {}  # by cut: those that are kept, and by which node
        self.storages = []
        self.by_entry = {}
        self.by_item = {}
        self.node_numbers = {}
        self.node_modules = {}
        self.node_lines = {}
        self.reads = {}
        self.lines = {}
        self.streams = {}
        self.requests = self.unmatched = 0
        self._learn()

    # ---- what each storage is for

    def _learn(self):
        live, stack, cut = {}, [], 1
        self.order = self._order()
        for kind, index in self.order:
            if kind == "entry":
                self._learn_entry(index, live, stack, cut)
                continue
            item = self.items[index]
            if isinstance(item, End):
                stack.pop()
                continue
            stack.append(item)
            if item.kind == "cut":
                number = int(item.name.rpartition(" ")[2])
                self._apply_tags(live, number)
                self._apply_kept(live, number)
                self._apply_held(live, self.held.get(number, {}))
                cut = number + 1
            elif item.kind == "operator":
                self._learn_operator(item, live, stack)
        self._apply_tags(live, cut)
        for storage in self.storages:
            self._name_workspace(storage)
            self._name_way(storage)

    @staticmethod
    def _name_workspace(storage):
        """What a product asks for and no operator ever takes as a tensor is a workspace: cuBLAS's stays for all products of its stream,
        cuBLASLt's is one call's. A result goes on to another operator, or is dropped after the call."""
        if storage.product is None or storage.word is not None or storage.category is not None:
            return
        if storage.freed_cut is None:
            storage.category, storage.name = "workspace", "cuBLAS workspace"
        elif storage.freed_within:
            storage.category, storage.name = "workspace", "cuBLASLt workspace"

    def _name_way(self, storage):
        """What a node of a backward has made and another one takes: no variable leads there, the engine holds it. And what a graph holds, but
        not for itself."""
        if storage.is_copy and (not storage.held_by or storage.held_by.endswith(BY_GRAPH)):
            storage.held_by, storage.held_as = COPIES, "cached_copy"
        if storage.made_by is None or storage.category is not None or storage.held_by or storage.freed_cut is None or storage.freed_by is storage.made_by:
            return
        if self.phase_of.get(storage.freed_cut, ("after", 0, None, 0))[0] == storage.phase == "backward":
            storage.held_by, storage.held_as = (storage.asked_in, None) if storage.asked_in else (IN_BACKWARD, "gradient")

    def _order(self):
        """Items of the profiler and entries of the allocator in one order: an entry stands where its item is, one without an item where
        its time is."""
        order, at = [], 0
        for number, index in enumerate(self.matches):
            begin = at
            if index is not None and index >= at:
                at = index + 1
            elif index is None and self.entries[number]["action"] in REQUESTS + RELEASES:
                end = self.entries[number]["time_us"] * 1000 + 999
                limit = self._next_match(number)
                while at < limit and self.items[at].time <= end:
                    at += 1
            order += [("item", i) for i in range(begin, at) if not isinstance(self.items[i], Memory)]
            order.append(("entry", number))
        order += [("item", i) for i in range(at, len(self.items)) if not isinstance(self.items[i], Memory)]
        return order

    def _next_match(self, number):
        """Index of the first item that belongs to a later entry."""
        return next((index for index in self.matches[number + 1:number + 64] if index is not None), len(self.items))

    def _learn_entry(self, index, live, stack, cut):
        entry = self.entries[index]
        if entry["action"] == "alloc":
            phase = self.phase_of.get(cut, ("after", 0, None, 0))[0]
            line = self.sources.of_frames(entry["frames"])
            node = next((item for item in reversed(stack) if item.kind == "node"), None)
            if not line[0] and node is not None:
                line = self.node_lines.get(node.sequence, ("", ""))
            stream = self.streams.setdefault(entry["stream"], len(self.streams))
            storage = Storage(len(self.storages) + 1, entry["addr"], entry["size"], stream, phase, cut, line)
            operator = next((item for item in reversed(stack) if item.kind in ("operator", "node")), None)
            if operator is not None and operator.name in PRODUCTS:
                storage.product = operator
            elif operator is None:
                storage.asked_by = self.sources.library_function(entry["frames"])
            storage.is_copy = phase == "forward" and any(self._copies_parameter(item, live) for item in stack)
            if operator is not None and (operator is node or operator.sequence < 0):
                storage.made_by = node
                storage.asked_in = self.sources.torch_place(entry["frames"])
            storage.made_in = self.sources.library_place(entry["frames"])
            self.storages.append(storage)
            self.by_entry[index] = storage
            self.lines[storage.number] = line
            live[entry["addr"]] = storage
            for item in stack:
                if item.kind == "operator" and item.sequence >= 0 and line[0]:
                    self.node_lines.setdefault(item.sequence, line)
        elif entry["action"] == "oom":
            self._apply_held(live, next(self.held_at_ends, {}))
        elif entry["action"] == "free_requested" and entry["addr"] in live:
            storage = live.pop(entry["addr"])
            self.by_entry[index] = storage
            storage.freed_by = next((item for item in reversed(stack) if item.kind == "node"), None)
            storage.freed_cut = cut
            storage.freed_within = any(item is storage.product for item in stack)
            after = self.entries[index + 1] if index + 1 < len(self.entries) else {}
            storage.shared = not (after.get("action") == "free_completed" and after.get("addr") == entry["addr"])
            storage.lent = storage.lent or (storage.shared and after != {})

    @staticmethod
    def _copies_parameter(item, live):
        if item.kind != "operator" or item.name != "aten::_to_copy" or not item.inputs:
            return False
        source = live.get(item.inputs[0][3])
        return source is not None and source.category == "parameter"

    def _learn_operator(self, item, live, stack):
        if item.sequence >= 0:
            module = next((outer.name for outer in reversed(stack) if outer.kind == "module"), None)
            if module is not None and not any(outer.kind == "node" for outer in stack):
                self.node_modules[item.sequence] = module.partition("metaprof module ")[2]
        for dtype, sizes, device, address in item.inputs:
            storage = live.get(address) if device == "cuda" else None
            if storage is not None and storage.word is None:
                word = dtype_word(dtype)
                if word:
                    storage.word = f"{word}[{','.join(str(size) for size in sizes)}]"
        if item.name == "aten::record_stream" and item.inputs and item.inputs[0][3] in live:
            live[item.inputs[0][3]].lent = True
        if self._reads(item) and not any(self._reads(outer) for outer in stack[:-1] if outer.kind == "operator"):
            line = self._line_of_read(item)
            self.reads[item.name, line] = self.reads.get((item.name, line), 0) + 1

    def _line_of_read(self, item):
        """Of what the operator allocates, if it does: nothing else tells where it was called."""
        return self.node_lines.get(item.sequence, ("", ""))[0] if item.sequence >= 0 else ""

    @staticmethod
    def _reads(item):
        if item.name == "aten::copy_":
            return len(item.inputs) > 1 and item.inputs[0][2] == "cpu" and item.inputs[1][2] == "cuda"
        return item.name in READS and any(device == "cuda" for _, _, device, _ in item.inputs)

    def _apply_tags(self, live, cut):
        for _, address, _, category, name, word, grad in self.tags.get(cut, ()):
            storage = live.get(address)
            if storage is not None and category in ("parameter", "buffer") and word:
                storage.state = storage.state or {}
                storage.state[name] = f"{category} {quoted(name)} {word}{'g' if grad else ''}@{storage.number}"
            if storage is None or storage.category not in (None, "input") or (category == "input" and storage.phase == "forward" and storage.name):
                continue
            storage.category, storage.name = category, name
            storage.word = word or storage.word

    def _apply_kept(self, live, cut):
        """Of several nodes the earliest keeps a storage longest: a backward would come to it last."""
        first = {}
        for address, node in self.kept.get(cut, ()):
            storage = live.get(address)
            if storage is not None and storage.category not in ("parameter", "buffer"):
                first.setdefault(storage.number, (storage, node))
        self.kept_storages[cut] = [first[number] for number in sorted(first)]

    @staticmethod
    def _apply_held(live, held):
        for address, holder in held.items():
            if address in live:
                live[address].held_by, live[address].held_as = holder.text, holder.category

    # ---- the text

    def text(self):
        head, lines = {}, []
        for storage in self.storages:  # a program that makes one model after another names the next one's as it did the last one's
            head.update(storage.state or {})
        stack, born, cut, shown = [], [], 1, None
        shown = self._phase_line(1, None, lines)
        for kind, index in self.order:
            if kind == "entry":
                self._entry(index, stack, lines)
                continue
            item = self.items[index]
            if isinstance(item, End):
                self._close(stack.pop(), lines)
                continue
            stack.append(Frame(item))
            if item.kind == "cut":
                cut = int(item.name.rpartition(" ")[2]) + 1
                if self.kept_storages.get(cut - 1):
                    self._write_saved(self.kept_storages[cut - 1], lines)
                shown = self._phase_line(cut, shown, lines)
        return "\n".join([*head.values(), *lines]) + "\n"

    def _phase_line(self, cut, shown, lines):
        where = self.phase_of.get(cut)
        if where == shown:
            return shown
        if where is None or where[0] == "after":
            lines.append("# pause")
            return where
        phase, step, micro, _ = where
        if phase == "backward":
            self._save(cut, lines)
        text = "# phase setup" if phase == "setup" else f"# phase {phase} step {step}"
        if micro is not None and step in self.accumulates:
            text += f" micro {micro}"
        lines.append(text)
        return where

    def _save(self, cut, lines):
        """What the forward made and backward will let go of, at the beginning of the backward: kept by the node that lets go of it last."""
        found = [storage for storage in self.storages
                 if storage.phase == "forward" and storage.cut < cut and storage.freed_by is not None and storage.freed_cut >= cut and storage.category is None]
        self._write_saved([(storage, storage.freed_by) for storage in found], lines)
        for storage in found:
            storage.category = "activation"

    def _write_saved(self, found, lines):
        """Which node leads to which is not written: the graph is a chain, and the loss's node is the last of them."""
        last = None
        for storage, node in found:
            count = len(self.node_numbers)
            number, name = self._node(node, lines, last)
            if number > count:
                last = number, name
            lines.append(f"save {storage.number} {name}#{number}")
        lines.append(f"loss {last[1]}#{last[0]}" if last else "loss 0")

    def _node(self, item, lines, next_node=None):
        name = item.name.removeprefix("torch::autograd::")
        key = (name, item.sequence, item.time)
        if key not in self.node_numbers:
            self.node_numbers[key] = len(self.node_numbers) + 1
            module = self.node_modules.get(item.sequence, "")
            word = f" module={quoted(module)}" if module else ""
            edge = f" -> #{next_node[0]}" if next_node else ""
            lines.append(f"node #{self.node_numbers[key]} {quoted(name)}{word}{edge}")
        return self.node_numbers[key], quoted(name)

    def _open(self, stack, lines):
        """Writes the beginnings of what is around, if they have not been written."""
        for frame in stack:
            if frame.written:
                continue
            item = frame.begin
            frame.written = True
            if item.kind == "module":
                path = item.name.partition("metaprof module ")[2]
                lines.append(f"# enter {quoted(path)}" if path else "# enter")
            elif item.kind == "node":
                number, name = self._node(item, lines)
                lines.append(f"> evaluate {name}#{number}")
            elif item.kind == "operator":
                lines.append(f"> {quoted(item.name)}")

    @staticmethod
    def _close(frame, lines):
        if not frame.written:
            return
        if frame.begin.kind == "module":
            path = frame.begin.name.partition("metaprof module ")[2]
            lines.append(f"# leave {quoted(path)}" if path else "# leave")
        elif frame.begin.kind in ("node", "operator"):
            lines.append(" ".join(["<", *(f"{storage.word}@{storage.number}" for storage in frame.made if storage.word)]))

    def _entry(self, index, stack, lines):
        entry = self.entries[index]
        storage = self.by_entry.get(index)
        if entry["action"] in RELEASES and (index == 0 or self.entries[index - 1]["action"] not in RELEASES):
            lines += ["> step::empty_cache", "<"]  # meta/trace/calls.h: the program's call, one of its libraries', or the allocator's own
        if storage is None:
            return
        self._open(stack, lines)
        if entry["action"] == "alloc":
            if stack and stack[-1].begin.kind == "operator":
                stack[-1].made.append(storage)
            self.requests += 1
            self.unmatched += self.matches[index] is None
            line = f"+ {storage.number} {storage.bytes} {storage.category or _born(storage.phase)}"
            if storage.stream:
                line += f" s{storage.stream}"
            if self.matches[index] is None:
                line += " call=0"  # whose it is is not known
            if storage.name or storage.asked_by:
                line += f" name={quoted(storage.name or storage.asked_by)}"
            lines.append(line)
        else:
            if storage.shared:
                lines.append(f"record_stream {storage.number} {storage.stream + 1}")
            lines.append(f"- {storage.number}")


def _born(phase):
    return "activation" if phase == "forward" else "temporary"

