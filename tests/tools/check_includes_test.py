#!/usr/bin/env python3
"""tools/check_includes.py on small trees."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECKER = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_includes.py"

GOOD = {
    "meta/core/CMakeLists.txt": "metaprof_library(meta_core LINKS fmt::fmt)",
    "meta/core/tensor.h": "#pragma once",
    "meta/op/CMakeLists.txt": "# the call\nmetaprof_library(meta_op\n  LINKS meta_core)",
    "meta/op/record.h": '#include "meta/core/tensor.h"\n#include <vector>',
    "meta/op/record.cpp": '#include "meta/op/record.h"',
    "reports/CMakeLists.txt": "metaprof_library(reports LINKS meta_op)",
    "reports/text.cpp": '#include "meta/op/record.h"',
    "tests/all_test.cpp": '#include "meta/core/tensor.h"',
}


def check(files):
    """(exit status, output) for a tree of these files."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        result = subprocess.run([sys.executable, CHECKER, root], capture_output=True, text=True)
        return result.returncode, result.stdout + result.stderr


class CheckIncludes(unittest.TestCase):
    def expect_problem(self, changes, *parts):
        status, output = check({**GOOD, **changes})
        self.assertEqual(status, 1, output)
        for part in parts:
            self.assertIn(part, output)

    def test_what_is_linked_may_be_included(self):
        self.assertEqual(check(GOOD), (0, "include directions: 4 files in 3 folders, 0 problems\n"))

    def test_against_the_direction(self):
        self.expect_problem(
            {"meta/core/tensor.cpp": '\n#include "meta/op/record.h"'},
            'meta/core/tensor.cpp:2: meta/core may not include "meta/op/record.h"',
        )

    def test_what_a_link_links_is_not_permitted(self):
        self.expect_problem(
            {"reports/text.cpp": '#include "meta/core/tensor.h"'},
            'reports/text.cpp:1: reports may not include "meta/core/tensor.h"',
        )

    def test_a_link_that_is_commented_out(self):
        self.expect_problem(
            {"meta/op/CMakeLists.txt": "metaprof_library(meta_op # LINKS meta_core\n)"},
            "meta/op/record.h:1: meta/op may not include",
        )

    def test_path_not_from_the_root(self):
        self.expect_problem({"meta/op/record.cpp": '#include "record.h"'}, "meta/op/record.cpp:1", "root")

    def test_folder_without_library(self):
        self.expect_problem({"meta/op/detail/x.h": ""}, "meta/op/detail/x.h: its folder has no CMakeLists.txt")

    def test_what_stands_alone_includes_nothing_of_the_others(self):
        self.expect_problem(
            {"capture/emulator/driver/x.cpp": '#include "meta/core/types.h"', "meta/core/types.h": ""},
            "capture/emulator/driver/x.cpp:1: capture/emulator stands alone",
        )

    def test_circle(self):
        self.expect_problem(
            {"meta/core/CMakeLists.txt": "metaprof_library(meta_core LINKS meta_op)"},
            "circle: meta/core -> meta/op -> meta/core",
        )

    def test_circle_inside_a_folder(self):
        self.expect_problem(
            {
                "meta/core/shape.h": '#include "meta/core/tensor.h"',
                "meta/core/tensor.cpp": '#include "meta/core/tensor.h"\n#include "meta/core/shape.h"',
            },
            "meta/core: files include each other in a circle: shape -> tensor -> shape",
        )

    def test_nothing_to_check_is_no_success(self):
        self.assertEqual(check({"README.md": ""})[0], 1)

    def test_a_class_that_two_headers_define(self):
        other = {"reports/tensor.h": "namespace metaprof {\n\nclass Shape final : public Base {\n};\n\n}  // namespace metaprof"}
        self.expect_problem(
            {**other, "meta/core/shape.h": "namespace metaprof {\nstruct Shape {\n};\n}  // namespace metaprof"},
            "reports/tensor.h: class metaprof::Shape is also defined in meta/core/shape.h",
        )

    def test_the_same_name_in_two_namespaces_or_declared_only(self):
        changes = {
            "meta/core/shape.h": "namespace metaprof {\nstruct Shape {\n};\n}  // namespace metaprof",
            "meta/op/shape.h": "namespace metaprof::graph {\nstruct Shape {\n};\n}  // namespace metaprof::graph",
            "reports/shape.h": "namespace metaprof {\nstruct Shape;\n}  // namespace metaprof",
        }
        self.assertEqual(check({**GOOD, **changes})[0], 0)


if __name__ == "__main__":
    unittest.main()
