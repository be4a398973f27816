"""Writes the requests of memory of one device."""
import os

from metaprof_recorder.requests import allocator_log, trace, waiting
from metaprof_recorder.requests.matching import matched
from metaprof_recorder.storages.holders import of_device


def write(recorder, found, device):
    """Writes the requests of one device as the text of a trace, the lines beside it, and a row for each kind of reading."""
    items, entries, stretches = found
    path = recorder.output.path(f"events-{device}", ".trace")
    lines = trace.Writer(items, entries, matched(items, entries, device, stretches), recorder.rows,
                         [tag for tag in recorder.tags.found if tag[2] == device], recorder.sources,
                         [kept for kept in recorder.tags.kept if kept[2] == device],
                         {cut: of_device(held, device) for cut, held in recorder.peaks.held.items()},
                         [of_device(held, device) for held in recorder.peaks.held_at_ends.get(device, ())])
    with open(path, "w", encoding="utf-8") as file:
        file.write(lines.text())
    recorder.peaks.stays(device, lines.storages)
    with open(path.replace(".trace", ".lines"), "w", encoding="utf-8") as file:
        file.writelines(f"{storage} {line} {function}\n" for storage, (line, function) in sorted(lines.lines.items()) if line)
    with open(path.replace(".trace", ".held"), "w", encoding="utf-8") as file:
        file.writelines(f"{storage.number} {storage.held_as or '-'} {storage.held_by}\n" for storage in lines.storages if storage.held_by)
    with open(path.replace(".trace", ".made"), "w", encoding="utf-8") as file:
        file.writelines(f"{storage.number} {storage.made_in}\n" for storage in lines.storages if storage.made_in)
    beside = {}
    if recorder.keeps_log:
        with open(path.replace(".trace", ".log"), "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in allocator_log.Log(lines).lines())
        beside["log"] = os.path.basename(path.replace(".trace", ".log"))
    recorder.output.write("events", device=device, file=os.path.basename(path), requests=lines.requests, unmatched=lines.unmatched, **beside)
    bytes_, largest = waiting.at_peak(entries)
    if largest is not None:
        recorder.output.write("waiting", device=device, bytes=bytes_, line=recorder.sources.of_frames(largest["frames"])[0])
    lent = max((storage for storage in lines.storages if storage.lent), key=lambda storage: storage.bytes, default=None)
    if lent is not None:
        recorder.output.write("lent", device=device, bytes=lent.bytes, line=lent.line[0])
    if not recorder.reads.listening:
        for (operator, line), count in sorted(lines.reads.items()):
            recorder.output.write("data_read", device=device, op=operator, line=line, count=count, source="device")
