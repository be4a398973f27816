"""Which line of the program it was: the innermost frame that is the user's own, of a stack of frames."""
import linecache
import sys
import sysconfig

from metaprof_recorder import FOLDER


class Sources:
    def __init__(self, torch_folder):
        paths = sysconfig.get_paths()
        self._libraries = tuple({paths["stdlib"] + "/", paths["platstdlib"] + "/", paths["purelib"] + "/", paths["platlib"] + "/", torch_folder + "/"})
        self._torch = torch_folder + "/"
        self._own = FOLDER
        self._calls = self._torch + "_ops.py"
        self._cache = {}

    def kind(self, filename):
        """0: the user's own, 1: of a library, 2: of torch, Python or the recorder."""
        found = self._cache.get(filename)
        if found is None:
            if filename.startswith((self._torch, self._own, "<")):
                found = 2
            elif "/site-packages/" in filename or "/dist-packages/" in filename:
                found = 1
            elif filename.startswith(self._libraries):
                found = 2
            else:
                found = 0
            self._cache[filename] = found
        return found

    @staticmethod
    def short(filename):
        """A library's file by its package: "transformers/trainer.py"."""
        for folder in ("/site-packages/", "/dist-packages/"):
            if folder in filename:
                return filename.rpartition(folder)[2]
        return filename

    def of_frames(self, frames):
        """("FILE:LINE", function) of frames, the innermost first: the user's own, else a library's, else ("", "")."""
        library = None
        for frame in frames:
            kind = self.kind(frame["filename"])
            if kind == 0:
                return f"{frame['filename']}:{frame['line']}", frame["name"]
            if kind == 1 and library is None:
                library = frame
        return (f"{library['filename']}:{library['line']}", library["name"]) if library else ("", "")

    def library_function(self, frames):
        """The innermost function, if it is a library's or PyTorch's: what code without operators asks for (DDP's buckets) is known by it."""
        frame = next((frame for frame in frames if not frame["filename"].startswith(self._own)), None)
        if frame is None or self.kind(frame["filename"]) == 0 or frame["name"].startswith("<"):
            return None
        return frame["name"]

    def library_place(self, frames):
        """"nested_concat (transformers/trainer_pt_utils.py:87)": the innermost function of a library that the user's own code called; "": there is none."""
        for frame in frames:
            kind = self.kind(frame["filename"])
            if kind < 2:
                return f"{frame['name']} ({self.short(frame['filename'])}:{frame['line']})" if kind == 1 else ""
        return ""

    def torch_place(self, frames):
        """"foreach_all_gather (torch/distributed/…/_fsdp_collectives.py:195)": the innermost function, if it is PyTorch's; "": it is another's."""
        frame = next((frame for frame in frames if not frame["filename"].startswith(self._own)), None)
        if frame is None or not frame["filename"].startswith(self._torch):
            return ""
        return f"{frame['name']} ({self.short(frame['filename'])}:{frame['line']})"

    def of_stack(self, other_thread=None):
        """The same of what runs now; where this thread runs no code of the user's, of what `other_thread` does."""
        frame = sys._getframe(1)
        found = self.of_frames(_frames(frame))
        if not found[0] and other_thread is not None:
            frame = sys._current_frames().get(other_thread)
            found = self.of_frames(_frames(frame))
        return found

    def of_traceback(self, traceback):
        """The same of where an exception was raised."""
        frames = []
        while traceback is not None:
            frames.append({**_row(traceback.tb_frame), "line": traceback.tb_lineno})
            traceback = traceback.tb_next
        return self.of_frames(reversed(frames))

    def lines(self):
        """FILE:LINE of libraries' functions that run now, the innermost first, and then of the user's own that called them."""
        for frame in _frames(sys._getframe(1)):
            kind = self.kind(frame["filename"])
            if kind < 2:
                yield f"{frame['filename']}:{frame['line']}"
            if kind == 0:
                return

    def asking(self):
        """The innermost frame that is not the recorder's; torch's own may be, but not that by which the recorder passes a call on."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith((self._own, self._calls)):
            frame = frame.f_back
        return frame

    def reader(self):
        """The innermost frame that is neither torch's nor Python's."""
        frame = sys._getframe(1)
        while frame is not None and self.kind(frame.f_code.co_filename) == 2:
            frame = frame.f_back
        return frame

    @staticmethod
    def is_called_from(folder, function=None):
        """Whether a function of a file of this folder, and of this name, is among those that run now."""
        return _frame_within(folder, function) is not None

    @staticmethod
    def line_within(folder):
        """The text of the line of the innermost function of this folder that runs now; None: there is none."""
        frame = _frame_within(folder)
        return None if frame is None else linecache.getline(frame.f_code.co_filename, frame.f_lineno)


def without(folder, traceback):
    """A traceback without the functions of a folder's files."""
    kept = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(folder):
            kept.append(traceback)
        traceback = traceback.tb_next
    for entry, following in zip(kept, kept[1:] + [None]):
        entry.tb_next = following
    return kept[0] if kept else None


def _frame_within(folder, function=None):
    """The innermost frame of a file of this folder, and of a function of this name; None: there is none."""
    frame = sys._getframe(1)
    while frame is not None and (folder not in frame.f_code.co_filename or function not in (None, frame.f_code.co_name)):
        frame = frame.f_back
    return frame


def _frames(frame):
    while frame is not None:
        yield _row(frame)
        frame = frame.f_back


def _row(frame):
    code = frame.f_code
    return {"filename": code.co_filename, "line": frame.f_lineno, "name": code.co_qualname if hasattr(code, "co_qualname") else code.co_name}
