#!/usr/bin/env python3
"""tools/size_report.py finds functions and their lengths."""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import size_report  # noqa: E402


class SizeReport(unittest.TestCase):
    def expect(self, text, *found):
        self.assertEqual(list(size_report.functions(text)), list(found))

    def test_free_function(self):
        self.expect("int f(int a) {\n  return a;\n}\n", ("f", 1, 3))

    def test_blocks_and_lambdas_belong_to_their_function(self):
        self.expect("void f() {\n  if (x) {\n  }\n  g([](int) {\n  });\n}", ("f", 1, 6))

    def test_members_in_namespaces(self):
        self.expect(
            "namespace a {\nclass B : public C {\n public:\n  void f() const { g(); }\n};\n}\n", ("f", 4, 1)
        )

    def test_constructor_with_initialisers(self):
        self.expect("A::A(int x)\n    : x_(x) {\n}\n", ("A::A", 1, 3))

    def test_tables_are_no_functions(self):
        self.expect("const int a[] = {\n  1,\n  2,\n};\nenum class E { x };\n")

    def test_braces_in_text_do_not_count(self):
        self.expect(
            'void f() {\n  g("{", \'{\', 1\'000);\n  // {\n  /* { */\n  h(R"(\n{)");\n}\nvoid k() {\n}',
            ("f", 1, 7),
            ("k", 8, 2),
        )


if __name__ == "__main__":
    unittest.main()
