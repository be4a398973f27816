// Damaged files of every kind give a Program or an Error, and nothing else. Fixed seeds: a failure repeats.

#include <gtest/gtest.h>

#include <random>

#include "program/pt2/pt2.h"
#include "program/symbols.h"
#include "tests/frontend/archives.h"
#include "tests/read_file.h"

namespace metaprof {
namespace {

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  size_t below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }

  // One to four bytes are changed, or a part is removed, repeated, or replaced by another part.
  void damage(std::string& bytes) {
    for (size_t i = below(4) + 1; i > 0 && !bytes.empty(); --i) {
      const size_t at = below(bytes.size()), length = 1 + below(std::min<size_t>(64, bytes.size() - at));
      switch (below(5)) {
        case 0: bytes[at] = static_cast<char>(below(256)); break;
        case 1: bytes[at] ^= static_cast<char>(1 << below(8)); break;
        case 2: bytes.erase(at, length); break;
        case 3: bytes.insert(below(bytes.size()), bytes.substr(at, length)); break;
        default: bytes.replace(below(bytes.size()), length, bytes.substr(at, length));
      }
    }
  }

  // Values, keys and words that the reader treats in special ways are exchanged.
  void twist(std::string& json) {
    static const std::vector<std::string> kWords = {"null",
                                                    "-1",
                                                    "0",
                                                    "3.5",
                                                    "9223372036854775807",
                                                    "9223372036854775808",
                                                    "1e999",
                                                    "\"NaN\"",
                                                    "[]",
                                                    "{}",
                                                    "true",
                                                    "\"as_tensor\"",
                                                    "\"as_tensors\"",
                                                    "\"as_int\"",
                                                    "\"as_ints\"",
                                                    "\"as_expr\"",
                                                    "\"as_graph\"",
                                                    "\"as_none\"",
                                                    "\"as_sym_int\"",
                                                    "\"as_sym_ints\"",
                                                    "\"as_name\"",
                                                    "\"as_optional_tensors\"",
                                                    "\"user_input\"",
                                                    "\"user_output\"",
                                                    "\"buffer\"",
                                                    "\"parameter\"",
                                                    "\"name\"",
                                                    "\"inputs\"",
                                                    "\"outputs\"",
                                                    "\"graph\"",
                                                    "\"Symbol('s1')\"",
                                                    "\"FloorDiv(Symbol('s1'), Integer(0))\"",
                                                    "\"x\"",
                                                    "\"relu\"",
                                                    "\"linear\""};
    for (size_t i = below(3) + 1; i > 0; --i) {
      // From one of ,:[{ to the next of ,]}: a value, or a key.
      const size_t begin = json.find_first_of(",:[{", below(json.size()));
      if (begin == std::string::npos) continue;
      const size_t end = json.find_first_of(",:]}", begin + 1);
      if (end != std::string::npos) json.replace(begin + 1, end - begin - 1, kWords[below(kWords.size())]);
    }
  }

 private:
  std::mt19937 random_;
};

// Reads the file; true if it was accepted.
bool is_read(const std::string& path) {
  try {
    Program program = read_pt2(path);
    program.loss();
    bind_symbols(program, {});
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(Pt2Fuzz, DamagedArchives) {
  Mutator mutator(1);
  const TemporaryFile file("fuzz_archive.pt2");
  for (const char* name : {"base.pt2", "deflated.pt2", "legacy_layout.pt2"}) {
    const std::string original = read_file(std::string("tests/data/fixtures/") + name);
    for (int i = 0; i < 1500; ++i) {
      std::string bytes = original;
      mutator.damage(bytes);
      file.write(bytes);
      is_read(file.path());
    }
  }
}

TEST(Pt2Fuzz, DamagedDirectories) {
  // The end of an archive is its directory.
  Mutator mutator(2);
  const TemporaryFile file("fuzz_directory.pt2");
  const std::string original = read_file("tests/data/fixtures/deflated.pt2");
  const size_t directory = original.find("PK\x01\x02");
  ASSERT_NE(directory, std::string::npos);
  for (int i = 0; i < 2000; ++i) {
    std::string tail = original.substr(directory);
    mutator.damage(tail);
    file.write(original.substr(0, directory) + tail);
    is_read(file.path());
  }
}

// The program of an archive, damaged `count` times; returns how many were accepted.
int damage_program(const std::string& path, uint32_t seed, int count, void (Mutator::*damage)(std::string&)) {
  Mutator mutator(seed);
  const TemporaryFile file("fuzz_program.pt2");
  const std::string original = program_text(path);
  int accepted = 0;
  for (int i = 0; i < count; ++i) {
    std::string text = original;
    (mutator.*damage)(text);
    file.write_archive({{"m/models/model.json", text}});
    accepted += is_read(file.path());
  }
  return accepted;
}

TEST(Pt2Fuzz, DamagedPrograms) {
  damage_program("tests/data/fixtures/base.pt2", 3, 2000, &Mutator::damage);
  damage_program("tests/data/programs/cond.pt2", 4, 1000, &Mutator::damage);
  damage_program("tests/data/programs/symbolic_exprs.pt2", 5, 1000, &Mutator::damage);
}

TEST(Pt2Fuzz, TwistedPrograms) {
  // Most of what is left is sound JSON, so this reaches the checks behind the syntax.
  int accepted = damage_program("tests/data/fixtures/base.pt2", 6, 2000, &Mutator::twist);
  accepted += damage_program("tests/data/programs/symbolic_exprs.pt2", 7, 1000, &Mutator::twist);
  accepted += damage_program("tests/data/programs/nested_io.pt2", 8, 1000, &Mutator::twist);
  accepted += damage_program("tests/data/programs/checkpoint_strict.pt2", 9, 1000, &Mutator::twist);
  EXPECT_GT(accepted, 100) << "the changes are too wild to test much";
}

TEST(Pt2Fuzz, Expressions) {
  Mutator mutator(10);
  const std::string original =
      "Add(Mul(Integer(6), FloorDiv(Add(Symbol('s27', positive=True, integer=True), Integer(-1)), "
      "Integer(2))), "
      "Max(Integer(24), Pow(Symbol('s1'), Integer(2)), PythonMod(Integer(-7), Symbol('s2'))))";
  int evaluated = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = original;
    mutator.damage(text);
    try {
      const Expression expression = parse_expression(text);
      to_string(expression);
      solve(expression, {{"s1", 3}, {"s2", 0}}, 12);
      evaluate(expression, {{"s27", 10}, {"s1", 3}, {"s2", 5}});
      ++evaluated;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(evaluated, 100);
}

}  // namespace
}  // namespace metaprof
