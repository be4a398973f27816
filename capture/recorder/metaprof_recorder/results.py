"""What is written when the history ends, and when the program does."""
import os
from time import monotonic  # as it is now: the program may replace it

from metaprof_recorder.process import environment
from metaprof_recorder.pytorch import devices
from metaprof_recorder.requests import files


def write_requests(recorder):
    """Writes what the history has, and ends it."""
    before = monotonic()
    if recorder.capture:
        recorder.capture.end()
    found_all = recorder.history.end()
    if found_all is None:
        return
    recorder.reads.name(found_all.items)
    if recorder.capture:
        _write_program(recorder)
    for device, found in found_all.by_device():
        files.write(recorder, found, device)
    recorder.output.write("environment", environment=environment.values_of(environment.MEMORY))
    recorder.output.write("modules", types=recorder.modules.types)
    recorder.output.write("detail", took=round(monotonic() - before, 3))


def _write_program(recorder):
    capture, output = recorder.capture, recorder.output
    if capture.refused:
        output.write("note", text=f"the program is not saved: {capture.refused}")
        return
    output.write("saving")
    path = output.path("program", ".mp")
    with open(path, "w", encoding="utf-8") as file:
        file.write(capture.text(recorder.rows, recorder.modules.types))
    output.write("program", file=os.path.basename(path))


def write_last(recorder, whole):
    """The last phase, and what is known at the end. `whole`: the program has ended by itself."""
    output = recorder.output
    recorder.reads.stop()
    try:
        if not recorder.steps or recorder.phases.step < recorder.steps:  # else the forward after the last step has begun
            recorder.phases.finish(whole)
        _write_outside(recorder)
        recorder.peaks.end()
    except Exception as error:  # noqa: BLE001 - a profiler that is not ended would crash the process
        output.problem("events", f"the last phase could not be measured: {error!r}")
    try:
        write_requests(recorder)
    except Exception as error:  # noqa: BLE001 - the phases are worth more than what is missing then
        output.problem("events", f"the requests of memory could not be read: {error!r}")
    output.write("fixes", changes=recorder.fixes.rows())
    for device, operator, line, count, source in recorder.reads.rows():
        output.write("data_read", device=device, op=operator, line=line, count=count, source=source)


def _write_outside(recorder):
    """What is taken from the devices beyond what the allocator has: libraries' own memory, and on a real device the context."""
    for device in recorder.used_devices():
        taken = devices.taken(recorder.torch, device)
        if taken is not None:
            reserved = recorder.statistics.now(device)["reserved_bytes"]["current"]
            recorder.output.write("outside", device=device, bytes=max(0, taken - reserved))
