"""How the text of a program writes where its calls stand: in which module's call, and on which line of the source."""
import linecache
import os

from metaprof_recorder.text.arguments import word, words


def short_name(file):
    """Of the program's own files: from its folder on; of a library's: from the name of the library on."""
    for folder in (os.getcwd() + "/", "/site-packages/", "/dist-packages/"):
        before, found, rest = file.partition(folder)
        if found and (not before or folder[1:] in ("site-packages/", "dist-packages/")):
            return rest
    return file


class Places:
    """Modules and source lines, each of which is written down before the first call that has it."""

    def __init__(self, write, sources):
        self._write = write
        self._sources = sources
        self._scopes = {}  # (parent's number, path, which call of it) -> number
        self._files = {}
        self._lines = {}

    def scope(self, parent, path, call):
        """The number of a module's call within that of another one (0: none)."""
        key = parent, path, call
        number = self._scopes.get(key)
        if number is None:
            number = self._scopes[key] = len(self._scopes) + 1
            text = f"scope m{number} = {word(path)}"
            if call:
                text += f" key {word(f'{path}@{call}')}"
            self._write(text + (f" in m{parent}" if parent else ""))
        return number

    def stack(self, frame):
        """The number of the line of the program that is at work in this frame or one that called it (0: none)."""
        library = None
        while frame is not None:
            kind = self._sources.kind(frame.f_code.co_filename)
            if kind == 0:
                break
            if kind == 1 and library is None:
                library = frame
            frame = frame.f_back
        frame = frame or library
        if frame is None:
            return 0
        key = frame.f_code, frame.f_lineno
        return self._lines.get(key) or self._new_line(key)

    def _new_line(self, key):
        code, line = key
        file = self._files.get(code.co_filename)
        if file is None:
            file = self._files[code.co_filename] = len(self._files) + 1
            self._write(f"file f{file} = {words(short_name(code.co_filename))}")
        number = self._lines[key] = len(self._lines) + 1
        text = linecache.getline(code.co_filename, line).strip()
        self._write(f"line l{number} = f{file} {line} {word(code.co_name)} {words(text)}")
        self._write(f"stack s{number} = l{number}")
        return number
