"""The program that does the work: where it is, and one call of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any, Iterable, Mapping, NoReturn

# Exit codes of the program: it fits, it does not, bad usage or input.
FINE, FINDING, BAD = 0, 1, 2


class Error(Exception):
    """Bad usage or input: what, where, and what to do, in one line."""


def program_path() -> str:
    """The program: METAPROF_PROGRAM, the one in this package, or the one in PATH. Error: there is none."""
    given = os.environ.get("METAPROF_PROGRAM")
    if given:
        return given
    own = os.path.join(os.path.dirname(__file__), "bin", "metaprof")
    if os.path.exists(own):
        return own
    found = shutil.which("metaprof")
    # The command of this package is in PATH, too; it would look for itself.
    if found is None or os.path.realpath(found) == os.path.realpath(sys.argv[0]):
        raise Error("the program metaprof is neither in the package nor in PATH; METAPROF_PROGRAM can name it")
    return found


def main() -> NoReturn:
    """The command `metaprof` that is installed with the package: becomes the program."""
    try:
        program = program_path()
        os.execv(program, ["metaprof", *sys.argv[1:]])
    except (Error, OSError) as error:
        sys.exit(f"metaprof: {error}")


def option_words(options: Mapping[str, Any]) -> list[str]:
    """Options as words: clip_norm=1.0 is --clip-norm 1.0, True a flag, a list one word with commas."""
    words: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if name == "zero_grad_to_none" and value is not None:  # the one that takes true and false
            words += [flag, str(value).lower() if isinstance(value, bool) else _listed(value).lower()]
        elif value is None or value is False:
            continue
        elif name == "lora" and isinstance(value, Mapping):
            words += [flag, ",".join(f"{key}={_listed(each)}" for key, each in value.items())]
        elif isinstance(value, Mapping):
            for key, each in value.items():
                words += [flag, f"{key}={_shape(each)}"]
        elif value is True:
            words += [flag]
        else:
            words += [flag, _listed(value)]
    return words


def _listed(value: Any) -> str:
    return ",".join(str(each) for each in value) if isinstance(value, (list, tuple)) else str(value)


def _shape(shape: Any) -> str:
    if isinstance(shape, Iterable) and not isinstance(shape, str):
        return "x".join(str(size) for size in shape)
    return str(shape)


def run_to_file(words: list[str], path: str) -> dict[str, Any]:
    """The JSON that the program writes to a file, as its output is that of another program. Error: it wrote none."""
    done = subprocess.run([program_path(), *words], text=True, stderr=subprocess.PIPE)
    if not os.path.exists(path):
        raise _refusal(done)
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    sys.stderr.write(done.stderr)  # of the program that was run
    if report["problem"]:
        raise _refusal(done)
    return report


def _refusal(done: subprocess.CompletedProcess[str]) -> Error:
    lines = [line for line in done.stderr.splitlines() if line.startswith("metaprof: ")]
    message = lines[-1][len("metaprof: "):] if lines else f"the program ended with {done.returncode}"
    return Error(message)


def call_with_text(words: list[str], path: str) -> tuple[dict[str, Any], str]:
    """The JSON that the program writes to `path`, and its text. Error: its message, if it refuses."""
    done = subprocess.run([program_path(), *words, "--json", path], capture_output=True, text=True)
    if done.returncode not in (FINE, FINDING):
        raise _refusal(done)
    with open(path, encoding="utf-8") as file:
        return json.load(file), done.stdout


def call(words: list[str]) -> tuple[dict[str, Any], int]:
    """The JSON that the program writes, and its exit code. Error: its message, if it refuses."""
    done = subprocess.run([program_path(), *words, "--json", "-"], capture_output=True, text=True)
    if done.returncode not in (FINE, FINDING):
        raise _refusal(done)
    return json.loads(done.stdout[done.stdout.index("{"):]), done.returncode
