#!/usr/bin/env python3
"""tools/check_text.py finds private words in prose: documents without their code, and help and messages."""

import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_text  # noqa: E402


class PrivateWords(unittest.TestCase):
    def expect(self, name, text, *found):
        words = check_text.private_words()
        self.assertEqual([(line, word) for line, _, word in check_text.findings(name, text, words)], list(found))

    def test_a_document(self):
        self.expect("docs/a.md", "The cheapest cure\nis let go.\n", (1, "cure"), (2, "let go"))

    def test_whole_words_alone(self):
        self.expect("docs/a.md", "A secure procedure is airborne.\n")

    def test_code_in_a_document_is_not_prose(self):
        self.expect("docs/a.md", "`cure`\n\n```\ncure\n```\n\n    cure\n\n[page](cure.md)\n")

    def test_a_command_speaks_in_its_literals(self):
        self.expect("cli/fit_command.cpp", '// cure\nint cure;\nfail("no cure", "born");\n', (3, "cure"), (3, "born"))

    def test_other_code_is_not_prose(self):
        self.expect("meta/op/record.h", 'const char* text = "cure";\n')

    def test_generated_pages_are_not_prose(self):
        self.expect("docs/evidence/transcripts.md", "Cheapest cure\n")

    def test_every_line_of_the_table_is_read(self):
        words = check_text.private_words()
        self.assertGreater(len(words), 20)
        for word in words:
            self.assertTrue(word.instead)
            self.assertTrue(set(word.where) <= {"prose", "code"} and word.where, word)

    def test_a_word_that_is_no_longer_in_code_is_found_there(self):
        words = [check_text.PrivateWord("cure", check_text.re.compile(r"\bcure\b"), "fix", ["code"])]
        found = list(check_text.findings("meta/a.h", "int cure;\n", words))
        self.assertEqual([(line, word) for line, _, word in found], [(1, "cure")])


class OtherText(unittest.TestCase):
    def test_a_path_of_a_machine(self):
        found = list(check_text.findings("core/a.h", "// see /" + "home/somebody\n", []))
        self.assertEqual(len(found), 1)


if __name__ == "__main__":
    unittest.main()
