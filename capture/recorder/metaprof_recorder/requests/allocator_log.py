"""Writes the allocator's history with its addresses, a line an event: what `metaprof check` compares request by request and
`metaprof allocator --replay` repeats (docs/evidence/evidence.md has the grammar).

    # phase NAME        a phase begins
    > NAME  <           an operator or a node of backward begins and ends; one around which nothing happens has no line
    + ADDRESS BYTES     a request, - its return, c the end of a return that waited for a stream
    S R M U             segments: made, given back, mapped, unmapped
    ! oom BYTES         a request that failed

Addresses are hexadecimal, their lower 40 bits. Streams are numbered as they appear; the first has no word.
"""
from metaprof_recorder.requests.items import End
from metaprof_recorder.text.names import quoted

ADDRESS = (1 << 40) - 1
SEGMENTS = {"segment_alloc": "S", "segment_free": "R", "segment_map": "M", "segment_unmap": "U"}


class Log:
    """`writer`: of the same events as a trace, which knows their order and their phases."""

    def __init__(self, writer):
        self._writer = writer
        self._streams = {}
        self._before = {}  # the entry before the one that is written
        self._segments = []  # that were made for the request that follows
        self._live, self._waiting = set(), set()  # addresses: handed out; returned, and not yet free
        self._lines = []

    def lines(self):
        writer = self._writer
        shown, open_ = self._phase(1, None), []  # [Begin, whether it is written]
        for kind, index in writer.order:
            if kind == "entry":
                self._entry(writer.entries[index], open_)
                continue
            item = writer.items[index]
            if isinstance(item, End):
                if open_.pop()[1]:
                    self._lines.append("<")
                continue
            open_.append([item, False])
            if item.kind == "cut":
                cut = int(item.name.rpartition(" ")[2]) + 1
                if cut > max(writer.phase_of, default=0):
                    break  # what follows is of no phase
                shown = self._phase(cut, shown)
        # Ends of what is open, which would be missing otherwise.
        return self._lines + ["<"] * sum(written for _, written in open_)

    def _phase(self, cut, shown):
        where = self._writer.phase_of.get(cut)
        if where == shown or where is None:
            return shown
        phase, step, micro, _ = where
        text = f"# phase {phase}" if phase == "setup" else f"# phase {phase} step {step}"
        if micro is not None and step in self._writer.accumulates:
            text += f" micro {micro}"
        self._lines.append(text)
        return where

    def _entry(self, entry, open_):
        line = self._line(entry)
        self._before = entry
        if line is None:
            return
        if entry["action"] in ("segment_alloc", "segment_map"):
            self._segments.append(line)
            return
        for frame in open_:
            item, written = frame
            if not written and item.kind in ("operator", "node"):
                name = item.name.removeprefix("torch::autograd::")
                self._lines.append(f"> evaluate {name}" if item.kind == "node" else f"> {quoted(name)}")
                frame[1] = True
        self._lines += [*self._segments, line]
        self._segments = []

    def _line(self, entry):
        action, address, count = entry["action"], entry.get("addr", 0) & ADDRESS, entry["size"]
        if action == "alloc":
            self._live.add(address)
            return f"+ {address:x} {count}{self._stream(entry)}"
        if action == "free_requested" and address in self._live:  # else it is older than the history
            self._live.remove(address)
            self._waiting.add(address)
            return f"- {address:x}"
        if action == "free_completed" and address in self._waiting:
            self._waiting.remove(address)
            at_once = self._before.get("action") == "free_requested" and self._before.get("addr") == entry["addr"]
            return None if at_once else f"c {address:x}"
        if action in SEGMENTS:
            return f"{SEGMENTS[action]} {address:x} {count}{self._stream(entry) if action in ('segment_alloc', 'segment_map') else ''}"
        return f"! oom {count}" if action == "oom" else None

    def _stream(self, entry):
        number = self._streams.setdefault(entry["stream"], len(self._streams))
        return f" s{number}" if number else ""
