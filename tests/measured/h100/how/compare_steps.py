"""Compares steps that measure_steps.py wrote elsewhere with those of the card.   compare_steps.py drawn_steps.json.gz STEPS.jsonl [JOBS.json]

JOBS.json: the list that was run, if it is not the whole one; its jobs have an "id", the number in drawn_steps.json.gz.
"""
import collections
import gzip
import json
import statistics
import sys

ALLOCATED_PEAK, REQUESTED_PEAK, RESERVED_PEAK = 2, 3, 5  # columns of a phase; 1: what is allocated at its end
KINDS = {
    "equal": "allocated and requested bytes are equal in every phase",
    "equal but for one number": "the card has a tensor of one number more, from the model on",
    "addresses": "the same requests; the allocator split other blocks",
    "requests": "other requests",
}


def kind_of(card, here):
    """How the phases of a step differ."""
    differences = [tuple(a[column] - b[column] for column in (1, ALLOCATED_PEAK, REQUESTED_PEAK)) for a, b in zip(card, here)]
    requested = {difference[2] for difference in differences}
    if len(requested) > 1 or not requested <= {0, 2, 4}:
        return "requests"
    more = 512 if requested != {0} else 0  # the allocator's least block
    if any(difference[:2] != (more, more) for difference in differences):
        return "addresses"
    return "equal but for one number" if more else "equal"


def main(card_path, here_path, jobs_path=None):
    card = json.load(gzip.open(card_path))
    jobs = json.load(open(jobs_path)) if jobs_path else [{"id": number} for number in range(len(card))]
    kinds, errors, rows = collections.Counter(), collections.defaultdict(list), []
    for line in open(here_path):
        step = json.loads(line)
        job = card[jobs[step["job"]]["id"]]
        if "phases" not in job or "rows" not in step:
            if "phases" in job or "rows" in step:
                print(job["name"], "ended otherwise:", job.get("error") or step["error"])
            continue
        kind = kind_of(job["phases"], step["rows"])
        kinds[kind] += 1
        for column in (ALLOCATED_PEAK, RESERVED_PEAK):
            truth, told = (max(row[column] for row in phases) for phases in (job["phases"], step["rows"]))
            errors[column].append(told / truth - 1)
        rows.append((errors[ALLOCATED_PEAK][-1], errors[RESERVED_PEAK][-1], job["library"] if "library" in job else job["lib"], job["name"], kind))
    for allocated, reserved, library, name, kind in sorted(rows, key=lambda row: -abs(row[0])):
        if allocated or reserved:
            print(f"{100 * allocated:+8.3f} % {100 * reserved:+7.2f} % {library}:{name}  {kind}")
    for kind, count in kinds.most_common():
        print(f"{count:4} {kind}: {KINDS[kind]}")
    for column, what in ((ALLOCATED_PEAK, "allocated"), (RESERVED_PEAK, "reserved")):
        sizes = sorted(map(abs, errors[column]))
        within = ", ".join(f"{sum(size <= limit for size in sizes)} {name}" for limit, name in ((0, "equal"), (1e-4, "within 0.01 %"), (1e-3, "0.1 %"), (1e-2, "1 %")))
        print(f"{what} peak of {len(sizes)}: {within}; mean {100 * statistics.mean(sizes):.2f} %, worst {100 * sizes[-1]:.2f} %")


main(*sys.argv[1:])
