"""Which of the profiler's items is which of the allocator's entries."""
from collections import defaultdict, deque

from metaprof_recorder.requests.items import Memory
from metaprof_recorder.requests.trace import REQUESTS

MOST_APART = 200  # microseconds between the two recorders' times of one request, where their numbers differ


def matched(items, entries, device, stretches):
    """For each of the allocator's entries that gives out or takes back an address: the index of the profiler's item, or None.

    The profiler does not have all of them: it runs in stretches, those of other threads are missing, and returns outside every operator."""
    waiting = defaultdict(deque)
    for index, item in enumerate(items):
        if isinstance(item, Memory) and item.device == device:
            waiting[item.address, item.bytes > 0].append(index)
    asked = defaultdict(int)
    requests = [entry for entry in entries if entry["action"] in REQUESTS and _is_within(entry["time_us"], stretches)]
    for entry in requests:
        asked[entry["addr"], entry["action"] == "alloc"] += 1
    exact = {key for key, count in asked.items() if len(waiting.get(key, ())) == count}
    result = []
    for entry in entries:
        index = None
        if entry["action"] in REQUESTS and _is_within(entry["time_us"], stretches):
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


def _is_within(microseconds, stretches):
    return any(begin <= microseconds * 1000 + 999 and microseconds * 1000 <= end for begin, end in stretches)
