"""Blocks that were freed and wait for a stream that still uses them: how much of what the allocator reserved at most is theirs."""


def at_peak(entries):
    """Of one device's entries: the bytes that waited when the reserved memory was at its highest, and the largest of these blocks: the entry
    that asked for it. (0, None) where none waited."""
    asked, waiting = {}, {}
    reserved = peak = bytes_ = 0
    largest = None
    for entry in entries:
        action, address, count = entry["action"], entry.get("addr"), entry["size"]  # a request that failed has no address
        if action == "alloc":
            asked[address] = entry
        elif action == "free_requested":
            waiting[address] = asked.pop(address, None) or entry
        elif action == "free_completed":
            waiting.pop(address, None)
        elif action in ("segment_alloc", "segment_map"):
            reserved += count
            if reserved > peak:
                peak = reserved
                bytes_ = sum(block["size"] for block in waiting.values())
                largest = max(waiting.values(), key=lambda block: block["size"], default=None)
        elif action in ("segment_free", "segment_unmap"):
            reserved -= count
    return bytes_, largest
