#!/usr/bin/env python3
"""PyTorch's own tests on the emulated device, without and with the recorder, test by test.

    check_peer_tests.py TESTS METAPROF EMULATOR PYTHON OUT.csv test_cuda.py::TestCuda distributed/_tools/test_mem_tracker.py

TESTS is the folder `test` of a checkout of PyTorch, of the version that PYTHON has. PYTHON has pytest and expecttest, too. METAPROF is the
program, EMULATOR the folder of the stand-ins. Tests that OUT.csv has already are left out, so that a check that was stopped goes on. A row:
the test, its result on the stand-ins alone and under `metaprof run`, why it fails, what it says.

Memory of the device reads as zero: comparisons of tensors compare shapes (peer_tests_plugin.py). The tests of a file run in one process.
Those that fail run again with a late clock: what passes then fails by `timing`. What fails with both runs alone, in a process of its own, as
does what differs under `metaprof run`. What fails so is `other`.
"""
import argparse
import collections
import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
GOOD = ("passed", "skipped")


def command_of(options, arguments, attached, clock):
    tests = [options.python, "-m", "pytest", "--noconftest", "-p", "peer_tests_plugin", "-q", *arguments]
    if not attached:
        return ["env", f"LD_PRELOAD={options.emulator}/libmetaprof-emulator.so", *tests]
    return [options.metaprof, "run", "--device", "h200", "--context", "none", "--workspaces", "none", "--gpus", str(options.gpus),
            "--device-clock", clock, "--json", os.devnull, "--", *tests]


def lines_of(options, arguments, attached=False, clock="at-once"):
    """What the plugin wrote about the tests of one process. It is ended when it writes nothing for too long."""
    results = options.out.with_suffix(".results")
    results.write_text("")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(options.emulator), "TRITON_LIBCUDA_PATH": str(options.emulator),
                   "METAPROF_EMULATOR_GPUS": str(options.gpus), "METAPROF_EMULATOR_CLOCK": clock, "PEER_TESTS_RESULTS": str(results),
                   "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}"}
    with options.out.with_suffix(".log").open("w") as log:
        process = subprocess.Popen(command_of(options, arguments, attached, clock), cwd=options.tests, env=environment, stdout=log,
                                   stderr=subprocess.STDOUT, start_new_session=True)
    size, since = 0, time.monotonic()
    while process.poll() is None:
        time.sleep(0.1)
        if results.stat().st_size != size:
            size, since = results.stat().st_size, time.monotonic()
        elif time.monotonic() - since > options.seconds:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            with results.open("a") as more_results:
                more_results.write(json.dumps({"test": None, "result": "timed out"}) + "\n")
    return [json.loads(line) for line in results.read_text().splitlines()]


def results_of(options, tests, **how):
    """By test: its result, what it says. A test that ends the process has crashed; those after it run in another process."""
    results = {}
    while tests:
        started = None
        for line in lines_of(options, tests, **how):
            if line["test"] is None:  # the process was ended
                results[started] = (line["result"], f"nothing for {options.seconds} s")
            elif line["result"] == "started":
                started = line["test"]
                results[started] = ("crashed", "")
            else:
                results[line["test"]] = (line["result"], line["line"])
        if started is None:
            said = results.pop(None, ("crashed", "the process ended before its first test"))
            return {**results, **{test: said for test in tests}}
        tests = [test for test in tests if test not in results]
    return results


def failed(results):
    return [test for test, (result, _) in results.items() if result not in GOOD]


def check(options, tests):
    plain = results_of(options, tests)
    late = results_of(options, failed(plain), clock="late")
    for test in failed(late):
        plain.update(results_of(options, [test]))
    recorded = results_of(options, tests, attached=True)
    for test in tests:
        if recorded[test][0] != plain[test][0]:
            recorded.update(results_of(options, [test], attached=True))
    other = {*failed(recorded), *failed(plain)} - {test for test, (result, _) in late.items() if result in GOOD}
    for test in tests:
        (without, said), (attached, said_attached) = plain[test], recorded[test]
        why = "other" if test in other else "timing" if test in late and without not in GOOD else ""
        yield [test, without, attached, why, said if without not in GOOD else said_attached]


def main():
    parser = argparse.ArgumentParser()
    for name in ("tests", "metaprof", "emulator", "python", "out"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("-k", default="", help="pytest's own option")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=120, help="for one test")
    options = parser.parse_args()
    options.emulator, options.out = options.emulator.resolve(), options.out.resolve()
    have = {row[0] for row in csv.reader(options.out.open())} if options.out.exists() else set()
    for file in options.files:
        collected = lines_of(options, [file, "-k", options.k, "--collect-only"])
        found = [line["test"] for line in collected if line["result"] == "collected"]
        tests = [test for test in found if test not in have]
        if not found:
            print(f"{file}: no test was found; {options.out.with_suffix('.log')} says why", file=sys.stderr)
        for row in check(options, tests):
            with options.out.open("a") as out:
                csv.writer(out).writerow(row)
    rows = list(csv.reader(options.out.open()))
    different = [row[0] for row in rows if row[1] != row[2]]
    print(f"{len(rows)} tests:", dict(collections.Counter(row[3] or row[1] for row in rows)), "different with the recorder:", *different or ["none"])
    return 1 if different or any(row[3] == "other" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
