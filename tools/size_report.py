#!/usr/bin/env python3
"""Lists C++ files of more than 600 lines and functions of more than 60. A report: it never fails.

Functions are found by matching braces, not by parsing C++: a brace whose heading has a parameter list and
which stands directly in a namespace or a type opens a function.
"""

import pathlib
import re
import sys

FILE_LINES = 600
FUNCTION_LINES = 60
SKIPPED = {"build", "examples", "docs"}

LITERALS = re.compile(
    r'R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'  # raw string
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"  # not the ' of 1'000
    r"|//[^\n]*|/\*.*?\*/"
    r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",  # preprocessor
    re.S | re.M,
)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b[^()=]*$|\bextern\s*$|^\s*$")
ACCESS = re.compile(r"\b(public|protected|private)\s*$")
NAME = re.compile(r"([~\w:]+|operator\s*\S+?)\s*\(")


def blank(match):
    """The same number of lines, with nothing in them."""
    return "\n" * match.group(0).count("\n")


def functions(text):
    """(name, first line, number of lines) of every function in the text."""
    code = LITERALS.sub(blank, text)
    stack = []  # (name or None, line) of every open brace; a name is a function
    heading, heading_line, line = "", 1, 1
    for c in code:
        if c == "\n":
            line += 1
        if c == "{":
            inside_function = any(name for name, _ in stack)
            name = None if inside_function or SCOPE.search(heading) else NAME.search(heading)
            stack.append((name.group(1) if name else None, heading_line))
        elif c == "}" and stack:
            name, first = stack.pop()
            if name:
                yield name, first, line - first + 1
        if c in "{};" or (c == ":" and ACCESS.search(heading)):
            heading, heading_line = "", line
        else:
            if not heading.strip():
                heading_line = line
            heading += c


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    files, total, long_files, long_functions = 0, 0, [], []
    for path in sorted(p for p in root.rglob("*") if p.suffix in (".h", ".cpp")):
        where = path.relative_to(root)
        if where.parts[0] in SKIPPED or where.parts[0].startswith("."):
            continue
        text = path.read_text()
        lines = text.count("\n")
        files, total = files + 1, total + lines
        if lines > FILE_LINES:
            long_files.append((lines, where))
        for name, first, count in functions(text):
            if count > FUNCTION_LINES:
                long_functions.append((count, f"{where}:{first} {name}"))

    print(f"{files} files, {total} lines of C++")
    for title, entries in (
        (f"files of more than {FILE_LINES} lines", long_files),
        (f"functions of more than {FUNCTION_LINES} lines", long_functions),
    ):
        print(f"{title}: {len(entries)}")
        for count, where in sorted(entries, key=lambda entry: -entry[0]):
            print(f"  {count:5}  {where}")


if __name__ == "__main__":
    main()
