"""How a program ends, and how it is ended. However it does, what was recorded is written first."""
import atexit
import ctypes
import os
import sys
import threading
from os import getpid  # as it is now: the program may replace it

from metaprof_recorder.ranks import peers


def watch(recorder):
    """Has the recorder finish when the interpreter ends, also by os._exit; tells it of forks."""
    atexit.register(_at_exit, recorder)
    recorder.leave = os._exit
    watch_exit(recorder)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=recorder.forked)


def watch_exit(recorder):
    """Calls of os._exit write what was recorded first."""
    leave = recorder.leave

    def _exit(status):
        recorder.finish(whole=False)
        leave(status)

    _exit.__doc__ = leave.__doc__
    os._exit = _exit


def skip_destructors():
    """In a forked child: the profiler's library has a thread that did not come along, and at the end of the process waits for it for ever.
    Python has ended by then and the program's files are written, so the C library's exit handlers need no more than write theirs."""
    library = ctypes.CDLL(None)
    try:
        library.on_exit(library._exit, None)  # handlers run the last one first
        library.__cxa_atexit(library.fflush, None, None)
    except AttributeError:  # another C library
        pass


def _at_exit(recorder):
    if not recorder.ending_lock.acquire(blocking=False):
        threading.Event().wait()  # another thread writes, and ends the process when it has
    if hasattr(sys, "last_value") and not isinstance(sys.last_value, recorder.torch.OutOfMemoryError) and recorder.reads.last_unknown:
        recorder.output.write("note", text="the program ended with an exception after it had read a value that is not known, at "
                              f"{recorder.reads.last_unknown}: try --assume {recorder.reads.last_unknown}=N")
    _tell_exception(recorder)
    # An exception that ended the program keeps the frames alive in which it happened, and their tensors.
    for name in ("last_traceback", "last_value", "last_exc"):
        if hasattr(sys, name):
            setattr(sys, name, None)
    recorder.finish(whole=True)


def _tell_exception(recorder):
    """The exception that ended the program, if one did: what was recorded is then of a part of it."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if error is None or getpid() != recorder.pid or isinstance(error, SystemExit):
        return
    peers.end()  # the job has failed, and they may wait for this rank
    line, function = recorder.sources.of_traceback(error.__traceback__)
    recorder.output.write("exception", type=type(error).__name__, line=line, function=function,
                          out_of_memory=isinstance(error, recorder.torch.OutOfMemoryError), phase=recorder.phases.name, step=recorder.phases.step)


def end_program(recorder, status):
    """Ends it now: its own exit handlers and `finally` blocks do not run, so that it writes no files of a run that was cut off."""
    if getpid() != recorder.pid or not recorder.ending_lock.acquire(blocking=False):
        return  # it is being ended
    recorder.finish(whole=False)
    recorder.output.write("ended", after_steps=recorder.steps)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass
    recorder.leave(status)


def end_soon(recorder, seconds):
    """Ends it after the grace, if it has not ended by then: nothing may follow the last step that would do it."""
    if getattr(recorder, "ending", None):
        return
    recorder.ending = threading.Timer(seconds, end_program, (recorder, 0))
    recorder.ending.daemon = True
    recorder.ending.start()
