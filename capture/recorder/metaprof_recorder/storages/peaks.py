"""What is alive when more is allocated than ever before, and who holds it.

Of the steps of which every request is kept, the trace says what is alive; this adds who holds it. Later a new peak is rare: an evaluation, a longer batch.
The allocator's history then keeps the latest requests, and what is alive at the peak is what is alive at the end of the stretch, with the requests
since undone.

Whoever asks must not slow the program down: after the first peaks only one that is higher by some per cent is looked at.
"""
import contextlib
import sys
import threading
from time import time_ns  # as it is now: the program may replace it

from metaprof_recorder.pytorch import devices
from metaprof_recorder.storages.holders import Holders

MOST_REQUESTS = 20_000  # that the history keeps
ALL_OF = 40             # peaks that are looked at, whatever they are
HIGHER = 1.02           # than the last that was looked at, after those
LISTED = 200            # storages that are written, the largest first; of the others their sums by holder


class Peaks:
    def __init__(self, recorder):
        self._recorder, self._torch = recorder, recorder.torch
        self._most = {}      # device -> bytes
        self._looked = {}    # device -> bytes of the latest peak that was looked at
        self._count = 0
        self._most_at_ends = {}  # device -> bytes that were alive at the end of a stretch, after the trace
        self._watches = False
        self._found, self._latest = {}, 0  # holders of the latest peak that was written, and when, in µs
        self._given = None   # (name, value)
        self._emulator = devices.emulator()
        self._taken = {}     # device -> bytes in use at most, of the emulated device
        self._staying = {}   # (address, device) -> Storage (requests/trace.py) that was alive when the trace ended
        self.held = {}          # of the steps that the trace has: cut -> {(address, device): Holder}
        self.held_at_ends = {}  # device -> the same for each time that memory ran out in them

    # ---- when

    def watch(self):
        """The trace has ended: from here on the history keeps the latest requests."""
        try:
            self._torch.cuda.memory._record_memory_history("all", context="alloc", stacks="python", max_entries=MOST_REQUESTS)
            self._watches = True
        except Exception as error:  # noqa: BLE001 - what is alive at later peaks is not known then
            self._recorder.output.problem("events", f"later peaks are not looked at: {error!r}")

    def stays(self, device, storages):
        """What the trace knows of those that outlive it. `storages`: see requests/trace.py."""
        self._staying.update({(storage.address, device): storage for storage in storages if storage.freed_cut is None})

    def end(self):
        if self._watches:
            self._watches = False
            self._torch.cuda.memory._record_memory_history(None)

    def measured(self, cut, rows):
        """A stretch has ended. `rows`: statistics by device."""
        new = [device for device, row in rows.items() if self._is_looked_at(device, row["allocated_bytes"]["peak"])]
        rises = self._rises(rows)
        if not new and not rises:
            return
        found = self._holders(self._recorder.in_backward)
        if not new:
            self._found, self._latest = found, time_ns() // 1000
            return
        self._count += self._recorder.phases.phase != "setup"
        if self._recorder.history.running:
            self.held[cut] = found
        elif self._watches:
            for device in new:
                self._write(device, rows[device]["allocated_bytes"]["peak"], found)

    def device_grew(self):
        """Whether more of the emulated device is in use than when this was last asked, and there is a peak to look at."""
        device = self._torch._C._cuda_getDevice()
        taken = self._emulator.metaprof_emulator_count(b"memory", device)
        if taken <= self._taken.get(device, 0):
            return False
        self._taken[device] = taken
        return self._recorder.statistics.peak_so_far(device) > HIGHER * self._looked.get(device, 0)

    def ran_out(self, device):
        """In the middle of a stretch, in any thread."""
        peak = self._recorder.statistics.peak_so_far(device)
        is_most = peak >= self._most.get(device, 0)
        if is_most:
            self._most[device] = self._looked[device] = peak
        if self._recorder.history.running:
            self.held_at_ends.setdefault(device, []).append(self._holders(self._recorder.in_backward))
        elif self._watches and is_most:
            self._write(device, peak, self._holders(self._recorder.in_backward))

    def _rises(self, rows):
        """Whether more is alive at the end of a stretch than ever: a backward that begins now may have the next peak, and frees what says who held it."""
        if not self._watches:
            return False
        now = {device: row["allocated_bytes"]["current"] for device, row in rows.items()}
        rises = any(count > self._most_at_ends.get(device, 0) for device, count in now.items())
        self._most_at_ends = {device: max(count, self._most_at_ends.get(device, 0)) for device, count in now.items()}
        return rises

    def _is_looked_at(self, device, peak):
        if peak <= self._most.get(device, 0):
            return False
        self._most[device] = peak
        if self._count >= ALL_OF and peak < HIGHER * self._looked.get(device, 0):
            return False
        self._looked[device] = peak
        return True

    @contextlib.contextmanager
    def given(self, name, value):
        """While this lasts, this is a root, too: no variable of the program need lead to it."""
        self._given = name, value
        try:
            yield
        finally:
            self._given = None

    # ---- what

    def _holders(self, in_backward):
        recorder = self._recorder
        names = {id(parameter): name for name, parameter in recorder.tags.parameters()}
        # A frame that knew itself would live on with all that called it, and with what those hold.
        frame = sys._getframe(1) if threading.get_ident() == recorder.thread else sys._current_frames().get(recorder.thread)
        graphs = None if in_backward else recorder.tags.graphs
        return Holders(self._torch, recorder.sources, names, graphs).look(frame, self._given) if frame is not None else {}

    def _write(self, device, peak, holders):
        now = time_ns() // 1000
        alive = _alive_at_most(self._torch.cuda.memory._snapshot(), device)
        rows = []
        for address, (count, frames, made) in alive.items():
            holder = holders.get((address, device))
            if holder is None and made < self._latest:  # it was there when the one before was looked at, and has gone since
                holder = self._found.get((address, device))
            row = {"bytes": count, "category": "temporary", "line": self._recorder.sources.of_frames(frames or [])[0]}
            place = self._recorder.sources.library_place(frames or [])
            if place:
                row["made_in"] = place
            stays = self._staying.get((address, device)) if made == 0 else None
            if stays is not None and stays.bytes == count and stays.category:
                row.update(category=stays.category, name=stays.name or "")
            if holder:
                row.update(held_by=holder.text, dtype=holder.dtype or "", shape=holder.shape)
                if row["category"] == "temporary":
                    row.update(category=holder.category or "kept", name=holder.name)
            rows.append(row)
        rows.sort(key=lambda row: -row["bytes"])
        self._found, self._latest = holders, now
        self._recorder.output.write("peak", device=device, allocated_bytes=peak, storages=_summed(rows))


def _summed(rows):
    """The largest, and what the others are together, by category and holder."""
    rest = {}
    for row in rows[LISTED:]:
        key = row["category"], row.get("held_by", "")
        rest[key] = rest.get(key, 0) + row["bytes"]
    return rows[:LISTED] + [{"bytes": count, "category": category, "held_by": held_by, "several": True}
                            for (category, held_by), count in rest.items()]


def _alive_at_most(snapshot, device):
    """{address: (bytes, frames, when it was made in µs or 0)} when most was allocated, as far back as the history goes."""
    alive = {}
    for segment in snapshot["segments"]:
        if segment["device"] != device:
            continue
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                alive[block.get("address", address)] = block.get("requested_size", block["size"]), block.get("frames")
            address += block["size"]
    entries = [entry for entry in snapshot["device_traces"][device] if entry["action"] in ("alloc", "free_requested")]
    now = sum(count for count, _ in alive.values())
    most, at = now, len(entries)
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        now += entry["size"] if entry["action"] == "free_requested" else -entry["size"]
        if now > most:
            most, at = now, index
    for entry in reversed(entries[at:]):
        if entry["action"] == "free_requested":
            alive[entry["addr"]] = entry["size"], None
        else:
            alive.pop(entry["addr"], None)
    made = {}
    for entry in entries[:at]:  # what is freed since has its frames where it was made
        if entry["action"] == "alloc":
            made[entry["addr"]] = entry
    found = {}
    for address, (count, frames) in alive.items():
        entry = made.get(address, {})
        found[address] = count, frames or entry.get("frames"), entry.get("time_us", 0)
    return found
