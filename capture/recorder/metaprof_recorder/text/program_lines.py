"""The lines of a captured program in their order: phases stand where they begin, and drops behind the calls after which tensors went."""
import re

from metaprof_recorder.text.program_phases import Phases

SOURCE, DROPS = re.compile(r" dtype_of %(\d+)"), re.compile(r" drop (%\d+(?:, %\d+)*)$")


def text(program, rows, lines, values_before, functions):
    """`program`: its Calls; `rows`: (phase, step, first cut, last cut) of the phases; `lines`: what stands before the calls;
    `values_before`: how many values there were where a checkpointed region begins, by its line."""
    phases = Phases(rows)
    drops = {}
    for call, numbers in program.drops.items():
        drops.setdefault(program.calls[min(call, len(program.calls) - 1)], []).extend(numbers)
    lines += phases.line(1)
    calls = set(program.calls)
    call = len(lines) - 1  # where the last one stands
    region = None          # where the checkpointed region begins that is open

    def drop(numbers):
        if numbers:
            lines[call] += f"{',' if ' drop %' in lines[call] else ' drop'} {', '.join(f'%{number}' for number in numbers)}"

    for index, line in enumerate(program.lines):
        if isinstance(line, int):
            # A region is in one phase: that of the module's call in it.
            at = len(lines) if region is None else region
            begins = phases.line(line + 1)
            lines[at:at] = begins
            if region is not None:
                region += len(begins)
            call = len(lines) - 1 if begins and region is None else call + len(begins) if call >= at else call
        else:
            lines += functions.lines(index, line) if index in functions.leaves else [line]
            if line.startswith("checkpoint"):
                region = len(lines) - 1
                made_outside, held = values_before[index], []
            elif line == "}":
                region = None
                drop(held)
            elif index in calls:
                call = len(lines) - 1
        numbers = drops.get(index, ())
        if region is not None:  # what a region was given is held by its caller
            held += [number for number in numbers if number < made_outside]
            numbers = [number for number in numbers if number >= made_outside]
        drop(numbers)
    return "\n".join(without_gone_sources(lines)) + "\n"


def without_gone_sources(lines):
    """A variable may hold the dtype of a tensor that has been dropped (`dtype = x.dtype; x = f(x); x.to(dtype)`): no value says it any more."""
    gone = set()
    for line in lines:
        source = SOURCE.search(line)
        if source and source[1] in gone:
            line = line[:source.start()] + line[source.end():]
        yield line
        drops = DROPS.search(line)
        if drops:
            gone.update(number[1:] for number in drops[1].split(", "))
