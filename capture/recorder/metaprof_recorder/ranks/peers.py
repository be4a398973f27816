"""Ranks of one job that run beside each other without a launcher, for what they send each other (values/ranks.py) and for the report.

`METAPROF_RECORD_RANKS` is a folder that they share: `rank-R` belongs to the process that runs rank R, `S-R-TAG` has what rank S has sent to rank R, one message
behind the other: its length as eight bytes (all set: its values are not known), then its bytes.

`METAPROF_RECORD_WITH` says which ranks are recorded besides: "3,63", which the first process starts; or "different": every rank to which a recorded one sends or
from which it receives, and, where there is none, the last one when the first has ended. Who asks for a message of a rank that does not run starts that, too, unrecorded: the same program with another RANK. A
recorded rank runs to its end, another one ends when the process that started it does.
"""
import atexit
import contextlib
import os
import subprocess
import sys
import threading
import time

PATIENCE_SECONDS = 600.0
LINES_OF_FAILED = 20
UNKNOWN = (1 << 64) - 1

_here = {"folder": None, "rank": 0, "last": None, "different": False, "words": [], "directory": None, "environment": {}}
_numbers = {}   # (rank, tag) -> messages from it so far
_started = {}   # rank -> its process
_recorded = set()  # ranks of these that are recorded
_lock = threading.Lock()


def begin(folder, rank, world):
    """This process is `rank` from now on."""
    _here.update(folder=folder, rank=rank, words=[sys.executable, *sys.orig_argv[1:]], directory=os.getcwd(), environment=dict(os.environ))
    own = os.path.join(folder, f"rank-{rank}")
    os.makedirs(own, exist_ok=True)
    with contextlib.suppress(FileExistsError):  # of the rank, and not of a process that it has started
        with open(os.path.join(own, "pid"), "x", encoding="ascii") as file:
            file.write(str(os.getpid()))
    atexit.register(end)
    asked = os.environ.get("METAPROF_RECORD_WITH") or ""
    _here["different"] = asked == "different" and os.environ.get("METAPROF_RECORD_PEER") != "unrecorded"
    if os.environ.get("METAPROF_RECORD_PEER"):
        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True, name="metaprof").start()
    else:
        _here["last"] = world - 1
        for other in [] if _here["different"] else [int(word) for word in asked.split(",") if word]:
            _start(other, True)


def wait(output):
    """Until the recorded ranks that this process has started have ended. `output`: who is told how."""
    if _here["different"] and not _started and _here["last"]:
        _start(_here["last"], True)
    for rank in sorted(_started):
        process = _started[rank]
        if rank not in _recorded:
            output.write("note", text=f"rank {rank} ran beside rank {_here['rank']} for what it sends: it is not in this report")
        elif process.wait() != 0:
            output.write("rank_ended", rank=rank, status=process.returncode)
            _show_output(rank)


def send(rank, tag, content):
    """`content`: bytes; None: they are not known."""
    if _here["folder"] is None:
        return
    _meet(rank)
    message = UNKNOWN.to_bytes(8, "little") if content is None else len(content).to_bytes(8, "little") + content
    file = os.open(_path(_here["rank"], rank, tag), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(file, message)
    finally:
        os.close(file)


def next_from(rank, tag):
    """The number of the message that a receive takes."""
    _meet(rank)
    number = _numbers.get((rank, tag), 0)
    _numbers[rank, tag] = number + 1
    return number


def receive(rank, tag, number):
    """The bytes of a message; None: nobody knows them."""
    if _here["folder"] is None:
        return None
    _start(rank, False)
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        ended = _has_ended(rank)  # before the file is read: what it has written until then counts
        found = _message(_path(rank, _here["rank"], tag), number)
        if found is not None:
            return found or None
        if ended:
            return None
        time.sleep(0.01)
    return None


def end():
    """Ends those that were started."""
    for process in _started.values():
        if process.poll() is None:
            process.kill()
            process.wait()
    _started.clear()


def _path(sender, receiver, tag):
    return os.path.join(_here["folder"], f"{sender}-{receiver}-{tag}")


def _message(path, number):
    """None: not there yet; empty: not known."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return None
    at = 0
    for place in range(number + 1):
        if at + 8 > len(content):
            return None
        count = int.from_bytes(content[at:at + 8], "little")
        at += 8
        if count == UNKNOWN:
            count = 0
        if place == number:
            return content[at:at + count] if at + count <= len(content) else None
        at += count
    return None


def _meet(rank):
    """A rank that this one sends to or receives from."""
    if _here["different"]:
        _start(rank, True)


def _start(rank, recorded):
    """Unless it runs already."""
    own = os.path.join(_here["folder"], f"rank-{rank}")
    with _lock:
        try:
            os.mkdir(own)
        except FileExistsError:
            return
        per_node = int(_here["environment"].get("LOCAL_WORLD_SIZE") or 1)
        environment = dict(_here["environment"], RANK=str(rank), LOCAL_RANK=str(rank % per_node), METAPROF_RECORD_PEER="recorded" if recorded else "unrecorded")
        if not recorded:
            environment.update(METAPROF_RECORD=own, METAPROF_EMULATOR_LOG=own, METAPROF_RECORD_PROGRAM="")
        with open(os.path.join(own, "output"), "wb") as output:
            _started[rank] = subprocess.Popen(_here["words"], cwd=_here["directory"], env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        if recorded:
            _recorded.add(rank)


def _show_output(rank):
    """The last lines of what a rank has printed that failed."""
    with open(os.path.join(_here["folder"], f"rank-{rank}", "output"), encoding="utf-8", errors="replace") as file:
        lines = file.readlines()[-LINES_OF_FAILED:]
    sys.stderr.write(f"metaprof: rank {rank} failed; the end of what it printed:\n" + "".join(lines))


def _has_ended(rank):
    """False while it has not begun."""
    process = _started.get(rank)
    if process is not None:
        return process.poll() is not None
    try:
        with open(os.path.join(_here["folder"], f"rank-{rank}", "pid"), encoding="ascii") as file:
            os.kill(int(file.read()), 0)
    except ProcessLookupError:
        return True
    except (FileNotFoundError, ValueError):
        return False
    return False


def _end_with(parent):
    while os.getppid() == parent:
        time.sleep(0.1)
    os._exit(1)
