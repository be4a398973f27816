#!/usr/bin/env python3
"""Checks that files include only headers of folders that their library links, and that no circle of includes is
inside a folder, where X.h and X.cpp count as one. Checks, too, that no two headers define a class of the same name in
the same namespace: the linker would keep the functions of one of them for both (the one-definition rule).

The permission is the link line: `metaprof_library(meta_op LINKS core meta_trace)` in
meta/op/CMakeLists.txt lets the files of meta/op include "core/...", "meta/trace/..." and their own
folder, and nothing that those link in turn. `metaprof_link(metaprof_cli backends_cuda)` beside it adds folders that are not
always built. tests/ may include what they like. capture/emulator/ stands alone:
its files, which are loaded into other programs, include only each other.

Usage: check_includes.py [ROOT]. Prints one line per violation and exits with 1, or 0 if there is none.
"""

import pathlib
import re
import sys

LIBRARY = re.compile(r"metaprof_library\(\s*(\w+)\s*(?:LINKS([^)]*))?\)")
MORE_LINKS = re.compile(r"metaprof_link\(\s*metaprof_(\w+)\s+([^)]*)\)")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
COMMENT = re.compile(r"#.*")
NAMESPACE = re.compile(r"namespace\s+([\w:]+)\s*\{")
CLASS = re.compile(r"(?:template\s*<.*>\s*)?(?:class|struct|union|enum(?:\s+class)?)\s+(\w+)(?:\s+final)?\s*(?::[^:;][^;]*)?\{")
STANDS_ALONE = "capture/emulator"
NOT_CHECKED = {"tests", "build", "examples", "docs", "tools"}


def project_files(root, pattern):
    for path in sorted(root.rglob(pattern)):
        first = path.relative_to(root).parts[0]
        if first not in NOT_CHECKED and not first.startswith("."):
            yield path


def read_links(root):
    """Folder -> set of folders that it may include."""
    links = {}
    for path in project_files(root, "CMakeLists.txt"):
        folder = path.parent.relative_to(root).as_posix()
        text = COMMENT.sub("", path.read_text())
        match = LIBRARY.search(text)
        if match:
            words = (match.group(2) or "").split()
            words += [word for more in MORE_LINKS.finditer(text) if more.group(1) == match.group(1) for word in more.group(2).split()]
            links[folder] = {word for word in words if "::" not in word}
    folder_of = {folder.replace("/", "_"): folder for folder in links}
    return {
        folder: {folder_of[name] for name in names if name in folder_of}
        for folder, names in links.items()
    }


def includes_within(folder, files):
    """X -> set of Y where X.h or X.cpp includes Y.h of the same folder."""
    within = {path.stem: set() for path in files}
    for path in files:
        for line in path.read_text().splitlines():
            match = INCLUDE.match(line)
            if not match:
                continue
            target = pathlib.PurePosixPath(match.group(1))
            if target.parent.as_posix() == folder and target.stem != path.stem and target.stem in within:
                within[path.stem].add(target.stem)
    return within


def defined_classes(header):
    """(namespace, name) of each class that this header defines outside of other classes."""
    namespaces = []
    for line in header.read_text().splitlines():
        opened = NAMESPACE.match(line)
        defined = CLASS.match(line)
        if opened:
            namespaces.append(opened.group(1))
        elif line.startswith("}  // namespace") and namespaces:
            namespaces.pop()
        elif defined:
            yield "::".join(namespaces), defined.group(1)


def classes_defined_twice(headers, root):
    first = {}
    for header in headers:
        where = header.relative_to(root).as_posix()
        for key in defined_classes(header):
            other = first.setdefault(key, where)
            if other != where:
                yield f"{where}: class {'::'.join(filter(None, key))} is also defined in {other}"


def find_cycle(links):
    """A list of names that link each other in a circle, or None."""
    done = set()

    def visit(folder, path):
        if folder in path:
            return path[path.index(folder):] + [folder]
        if folder in done:
            return None
        for target in sorted(links[folder]):
            cycle = visit(target, path + [folder])
            if cycle:
                return cycle
        done.add(folder)
        return None

    for folder in sorted(links):
        cycle = visit(folder, [])
        if cycle:
            return cycle
    return None


def is_within(folder, room):
    return (folder + "/").startswith(room + "/")


def check_file(path, root, links):
    folder = path.parent.relative_to(root).as_posix()
    where = path.relative_to(root).as_posix()
    alone = is_within(folder, STANDS_ALONE)
    if folder not in links and not alone:
        yield f"{where}: its folder has no CMakeLists.txt with metaprof_library"
        return
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match.group(1)
        target = pathlib.PurePosixPath(header).parent.as_posix()
        if not (root / header).is_file():
            yield f'{where}:{number}: "{header}" is not written from the root of the project'
        elif alone:
            if not is_within(target, STANDS_ALONE):
                yield f'{where}:{number}: {STANDS_ALONE} stands alone and may not include "{header}"'
        elif target != folder and target not in links[folder]:
            yield (
                f'{where}:{number}: {folder} may not include "{header}": '
                f"{target} is not in the LINKS of {folder}/CMakeLists.txt"
            )


def main():
    default_root = pathlib.Path(__file__).resolve().parent.parent
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else default_root
    links = read_links(root)
    if not links:
        sys.exit(f"check_includes: no metaprof_library found under {root}")

    problems = []
    files = [path for pattern in ("*.h", "*.cpp") for path in project_files(root, pattern)]
    for path in files:
        problems += check_file(path, root, links)
    cycle = find_cycle(links)
    if cycle:
        problems.append("folders link each other in a circle: " + " -> ".join(cycle))
    for folder in sorted({path.parent for path in files}):
        name = folder.relative_to(root).as_posix()
        cycle = find_cycle(includes_within(name, [path for path in files if path.parent == folder]))
        if cycle:
            problems.append(f"{name}: files include each other in a circle: " + " -> ".join(cycle))

    problems += classes_defined_twice([path for path in files if path.suffix == ".h"], root)

    for problem in problems:
        print(problem)
    print(f"include directions: {len(files)} files in {len(links)} folders, {len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
