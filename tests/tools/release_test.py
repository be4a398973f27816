#!/usr/bin/env python3
"""The parts of tools/release that need no network and no compiler: the bill of materials, the check of a wheel, the commit, bad usage."""

import contextlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from unittest import mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/wheel"))
import bill_of_materials  # noqa: E402
import check_wheel  # noqa: E402
import parts  # noqa: E402

SAMPLE = [
    {"name": "fmt", "package": "libfmt-dev", "license": "MIT", "how": "linked", "cmake": "fmt", "version": "9.1.0+ds1-2",
     "distribution": "debian", "sha256": "0" * 64},
    {"name": "CBC", "package": "coinor-libcbc-dev", "license": "EPL-1.0", "how": "loaded", "cmake": "cbc::cbc", "version": "2.10.8",
     "distribution": "debian", "sha256": "1" * 64},
]


class Parts(unittest.TestCase):
    def test_are_all_that_cmake_finds(self):
        text = (ROOT / "tools/cmake/MetaprofPackages.cmake").read_text()
        found = set(re.findall(r"^\s*find_package\((\w+)", text, re.M))
        found |= set(re.findall(r"^\s*(?:metaprof_library_without_package|metaprof_loaded_library)\((\S+)", text, re.M))
        found |= set(re.findall(r"^\s*add_library\((\w+::\w+) ", text, re.M))
        known = {part.cmake for part in parts.PARTS} | set(parts.ONLY_FOR_TESTS)
        self.assertGreater(len(found), 10)
        self.assertEqual(found - known, set())

    def test_are_all_libraries_that_setup_installs(self):
        run = re.search(r'\[run\]="([^"]+)"', (ROOT / "tools/setup").read_text())[1]
        installed = {name.replace("libmimalloc-dev", "mimalloc") for name in run.split() if name.endswith("-dev")}
        self.assertGreater(len(installed), 5)
        self.assertEqual(installed - {part.package for part in parts.PARTS}, set())

    def test_files_have_a_hash(self):
        for file in parts.FILES.values():
            self.assertRegex(file.sha256, "^[0-9a-f]{64}$")


class BillOfMaterials(unittest.TestCase):
    def test_has_each_part_with_version_license_and_hash(self):
        bill = bill_of_materials.bill(SAMPLE, "0.3.0", "0123456789", "2026-01-31")
        self.assertEqual((bill["bomFormat"], bill["specVersion"]), ("CycloneDX", "1.5"))
        own = bill["metadata"]["component"]
        self.assertEqual((own["name"], own["version"], own["licenses"]), ("metaprof", "0.3.0", [{"license": {"id": "Apache-2.0"}}]))
        self.assertEqual(own["properties"], [{"name": "commit", "value": "0123456789"}])
        fmt, cbc = bill["components"]
        self.assertEqual((fmt["name"], fmt["version"], fmt["scope"]), ("fmt", "9.1.0+ds1-2", "required"))
        self.assertEqual((fmt["licenses"], fmt["hashes"][0]["content"]), ([{"expression": "MIT"}], "0" * 64))
        self.assertEqual(fmt["purl"], "pkg:deb/debian/libfmt-dev@9.1.0%2Bds1-2")
        self.assertEqual(cbc["scope"], "optional")
        self.assertEqual(bill["dependencies"][0]["dependsOn"], [fmt["bom-ref"], cbc["bom-ref"]])

    def test_is_the_same_for_the_same_parts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "parts.json"
            path.write_text(json.dumps(SAMPLE))
            words = [sys.executable, ROOT / "tools/wheel/bill_of_materials.py", path, "0.3.0", "0123456789", "2026-01-31"]
            once, again = (subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout for _ in range(2))
        self.assertEqual(once, again)
        self.assertEqual(len(json.loads(once)["components"]), 2)


class Wheel(unittest.TestCase):
    """Of a stub: files of the right names, and a Python whose auditwheel says what the test wants."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        lists = (ROOT / "capture/emulator/CMakeLists.txt").read_text()
        self.names = [name.replace("*", "0.3.0") for name in check_wheel.expected_files(lists)]

    def wheel(self, names):
        path = self.folder / "metaprof-0.3.0-py3-none-linux_x86_64.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, "")
        return path

    def checked(self, wheel, found):
        """What check_wheel says where auditwheel finds the tag `found`."""
        python = self.folder / "python"
        python.write_text("#!/bin/sh\necho '" + json.dumps({"overall_tag": found}) + "'\n")
        python.chmod(0o755)
        words = ["check_wheel.py", str(wheel), "manylinux_2_28_x86_64", str(python)]
        with mock.patch.object(sys, "argv", words), contextlib.redirect_stderr(io.StringIO()):
            try:
                check_wheel.main()
            except SystemExit as end:
                return str(end.code)
        return ""

    def test_has_the_program_and_all_it_looks_for(self):
        self.assertIn("metaprof/lib/metaprof/emulator/libcudart.so.13", self.names)
        self.assertIn("metaprof/lib/metaprof/licenses/libfmt-dev.txt", self.names)
        self.assertEqual(self.checked(self.wheel(self.names), "manylinux_2_28_x86_64"), "")

    def test_is_refused_where_a_file_is_missing(self):
        self.names.remove("metaprof/lib/metaprof/recorder/sitecustomize.py")
        self.assertRegex(self.checked(self.wheel(self.names), "manylinux_2_28_x86_64"), "lacks metaprof/lib/metaprof/recorder/sitecustomize.py$")

    def test_is_refused_where_it_needs_a_newer_c_library(self):
        wheel = self.wheel(self.names)
        self.assertEqual(self.checked(wheel, "manylinux_2_5_x86_64"), "")
        for newer in ("manylinux_2_34_x86_64", "linux_x86_64"):
            self.assertIn(f"is {newer} and not manylinux_2_28_x86_64", self.checked(wheel, newer))


class Commit(unittest.TestCase):
    def test_of_a_source_distribution_is_that_of_its_file(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "tools/cmake").mkdir(parents=True)
            (folder / "tools/cmake/commit.txt").write_text("0123456789\n2026-01-31\n")
            subprocess.run(["cmake", f"-DFOLDER={folder}", f"-DSOURCE_FILE={folder}/commit.cpp", "-P", ROOT / "tools/cmake/commit.cmake"], check=True)
            self.assertIn('kCommit = "0123456789", *const kCommitDate = "2026-01-31"', (folder / "commit.cpp").read_text())


class Usage(unittest.TestCase):
    def refused(self, *words):
        done = subprocess.run([ROOT / "tools/release", *words], stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        return done.stderr

    def test_asks_for_a_commit(self):
        for words in ([], ["--help"], ["a", "b", "c"]):
            self.assertEqual(self.refused(*words), "tools/release: usage: tools/release COMMIT [FOLDER]\n")

    def test_names_an_unknown_commit(self):
        self.assertEqual(self.refused("v999"), "tools/release: 'v999' is neither a tag nor a commit of this repository\n")

    @unittest.skipUnless(shutil.which("git"), "git is not here")
    def test_names_a_tag_of_another_version(self):
        with tempfile.TemporaryDirectory() as name:
            tools = pathlib.Path(name) / "tools"
            (tools / "cmake").mkdir(parents=True)
            shutil.copy(ROOT / "tools/release", tools)
            (tools / "cmake/commit.cmake").touch()
            (tools.parent / "CMakeLists.txt").write_text("project(metaprof VERSION 0.3.0 LANGUAGES CXX)\n")
            git = ["git", "-C", name, "-c", "user.name=somebody", "-c", "user.email=somebody@localhost"]
            for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "all"], ["tag", "v0.4.0"]):
                subprocess.run([*git, *words], check=True)
            done = subprocess.run([tools / "release", "v0.4.0"], stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("the tag v0.4.0 is of the version 0.3.0", done.stderr)

    @unittest.skipUnless((ROOT / ".git").exists(), "not a clone")
    def test_keeps_what_a_folder_has(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "notes").touch()
            self.assertIn(f"{os.path.realpath(folder)} is not empty", self.refused("HEAD", folder))


if __name__ == "__main__":
    unittest.main()
