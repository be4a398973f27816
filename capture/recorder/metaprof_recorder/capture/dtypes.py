"""Where the dtypes that calls are given come from: the source names them (x.to(torch.float32)), or takes them from a tensor (x.to(h.dtype)).

A dtype is one object, whoever asks for it. So reads of `.dtype` are written down with the place in the source where they stand, and the
expression that a call was given is followed to the place that it comes from: through variables, and arguments of functions.
"""
import ast
import dis
import functools
import itertools
import linecache
import re

from metaprof_recorder import FOLDER

NAMED = re.compile(r"\btorch\.(float|double|half|bfloat16|b?float\d+|u?int\d*|long|short|bool|complex\d+)\b|"
                   r"\.(float|double|half|bfloat16)\(\)|dtype=[\"']")
CONVERSIONS = {"float", "double", "half", "bfloat16"}
FRAMES = 6       # that an argument is followed through
READS = 10_000   # frames of which reads are kept


def _named_dtypes(torch):
    return {name for name, value in vars(torch).items() if isinstance(value, torch.dtype)}


class DTypes:
    def __init__(self, torch, kind_of_file):
        self._names = _named_dtypes(torch)
        self._kind_of_file = kind_of_file
        self._reads = {}  # (id of a frame, its code) -> {instruction: (dtype, number of the value)}, in the order of the reads

    def read(self, frame, dtype, number):
        """The program has asked a value for its dtype, at the instruction where the frame is."""
        if len(self._reads) > READS:
            self._reads.clear()
        of_frame = self._reads.setdefault((id(frame), frame.f_code), {})
        of_frame.pop(frame.f_lasti, None)
        of_frame[frame.f_lasti] = dtype, number

    def source(self, frame, dtype):
        """Of the dtype that the call at work in this frame was given: "named", the number of the value it was taken from, or None."""
        while frame is not None and frame.f_code.co_filename.startswith(FOLDER):
            frame = frame.f_back
        found = self._of_call(frame, dtype)
        if found is not None:
            return found
        while frame is not None and self._kind_of_file(frame.f_code.co_filename) == 2:  # of torch
            frame = frame.f_back
        if frame is not None and _call_at(frame) is None:
            return "named" if NAMED.search(_lines(frame)) else None
        return self._of_call(frame, dtype)

    def _of_call(self, frame, dtype):
        call = _call_at(frame)
        if call is None:
            return None
        if isinstance(call.func, ast.Attribute) and call.func.attr in CONVERSIONS:
            return "named"
        return self._any(frame, [*call.args, *(one.value for one in call.keywords)], dtype, FRAMES)

    def _any(self, frame, given, dtype, depth):
        for one in given:
            found = self._source(frame, one, dtype, depth)
            if found is not None:
                return found
        return None

    def _source(self, frame, given, dtype, depth):
        if isinstance(given, ast.Attribute) and given.attr == "dtype":
            return self._read_at(frame, dtype, lambda position: _lies_in(position, given))
        if isinstance(given, ast.Attribute) and given.attr in self._names:
            return "named"
        if isinstance(given, (ast.IfExp, ast.BoolOp)):
            return self._any(frame, [given.body, given.orelse] if isinstance(given, ast.IfExp) else given.values, dtype, depth)
        if not isinstance(given, ast.Name):
            return None
        bound = self._read_at(frame, dtype, lambda position: given.id in position.bound_to)
        if bound is not None or depth == 0 or frame.f_back is None:
            return bound
        return self._argument(frame, given.id, dtype, depth)

    def _argument(self, frame, name, dtype, depth):
        """The same of an argument of the function, which its caller has given."""
        caller = frame.f_back
        call = _call_at(caller)
        if call is None:
            return None
        code = frame.f_code
        parameters = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
        if name not in parameters:
            return None
        for one in call.keywords:
            if one.arg == name:
                return self._source(caller, one.value, dtype, depth - 1)
        at = parameters.index(name) - (1 if parameters[0] == "self" and isinstance(call.func, ast.Attribute) else 0)
        if 0 <= at < len(call.args) and not any(isinstance(one, ast.Starred) for one in call.args[:at + 1]):
            return self._source(caller, call.args[at], dtype, depth - 1)
        return None

    def _read_at(self, frame, dtype, fits):
        """The value that was read last of the reads of this frame that fit."""
        found = None
        for instruction, (read, number) in self._reads.get((id(frame), frame.f_code), {}).items():
            place = _place(frame.f_code, instruction)
            if read is dtype and place is not None and fits(place):
                found = number
        return found


class Place:
    """Where an instruction stands in the source, and the names of variables to which its result is bound at once."""

    def __init__(self, position, bound_to):
        self.first, self.last, self.begin, self.end = position
        self.bound_to = bound_to


def _lies_in(place, node):
    """Whether the instruction is of this expression, whose places are those in the source (see _call)."""
    return (node.lineno, node.col_offset) <= (place.first, place.begin) and (place.last, place.end) <= (node.end_lineno, node.end_col_offset)


@functools.lru_cache(maxsize=None)
def _place(code, instruction):
    """Nothing before Python 3.11, and where there is no source."""
    if not hasattr(code, "co_positions"):
        return None
    position = next(itertools.islice(code.co_positions(), instruction // 2, None), None)
    if position is None or None in position:
        return None
    return Place(position, _bound_to(code, instruction))


@functools.lru_cache(maxsize=None)
def _bound_to(code, instruction):
    following = next((one for one in dis.get_instructions(code) if one.offset > instruction), None)
    if following is None or not following.opname.startswith("STORE_FAST"):
        return ()
    return following.argval[:1] if isinstance(following.argval, tuple) else (following.argval,)


def rebinds(frame):
    """Whether the call at work takes a variable and its result is bound to that variable (x = x.contiguous())."""
    call = _call_at(frame)
    of = call.func.value if call is not None and isinstance(call.func, ast.Attribute) else None
    return isinstance(of, ast.Name) and of.id in _bound_to(frame.f_code, frame.f_lasti)


def _call_at(frame):
    place = _place(frame.f_code, frame.f_lasti) if frame is not None else None
    return _call(frame.f_code, place) if place else None


@functools.lru_cache(maxsize=None)
def _call(code, place):
    """The call that stands there, its nodes at their places in the file; None: it is no call, or has no source."""
    lines = [linecache.getline(code.co_filename, line) for line in range(place.first, place.last + 1)]
    if not lines or not lines[0]:
        return None
    lines[-1] = _cut(lines[-1], 0, place.end)
    lines[0] = " " * place.begin + _cut(lines[0], place.begin, None)
    try:
        node = ast.parse("(\n" + "".join(lines) + "\n)", mode="eval").body
    except (SyntaxError, ValueError):
        return None
    ast.increment_lineno(node, place.first - 2)
    return node if isinstance(node, ast.Call) else None


def _cut(line, begin, end):
    """By columns of its UTF-8, as Python counts them."""
    return line.encode()[begin:end].decode(errors="replace")


def _lines(frame):
    """The source of the expression that is at work in a frame; before Python 3.11 its first line."""
    code = frame.f_code
    first = last = frame.f_lineno
    if hasattr(code, "co_positions"):
        begin, end, *_ = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None), (first, last))
        first, last = begin or first, end or last
    return "\n".join(linecache.getline(code.co_filename, line) for line in range(first, min(last, first + 50) + 1))
