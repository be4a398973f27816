#pragma once
// Words of a program's text that its printer and its parser share.

#include <string_view>

#include "program/program.h"

namespace metaprof {

inline constexpr int kProgramTextVersion = 1;

struct InputWord {
  std::string_view word;
  ProgramInput::Kind kind;
};
inline constexpr InputWord kInputWords[] = {{"parameter", ProgramInput::Kind::parameter},
                                            {"buffer", ProgramInput::Kind::buffer},
                                            {"constant_tensor", ProgramInput::Kind::constant_tensor},
                                            {"input", ProgramInput::Kind::user},
                                            {"constant", ProgramInput::Kind::constant}};

struct OutputWord {
  std::string_view word;
  ProgramOutput::Kind kind;
};
inline constexpr OutputWord kOutputWords[] = {{"output", ProgramOutput::Kind::user},
                                              {"loss", ProgramOutput::Kind::loss},
                                              {"buffer_mutation", ProgramOutput::Kind::buffer_mutation},
                                              {"parameter_mutation", ProgramOutput::Kind::parameter_mutation},
                                              {"input_mutation", ProgramOutput::Kind::input_mutation},
                                              {"gradient", ProgramOutput::Kind::gradient}};

template <class Words, class Kind>
constexpr std::string_view word_of(const Words& words, Kind kind) {
  for (const auto& row : words)
    if (row.kind == kind) return row.word;
  return {};
}
constexpr std::string_view to_string(ProgramInput::Kind kind) { return word_of(kInputWords, kind); }
constexpr std::string_view to_string(ProgramOutput::Kind kind) { return word_of(kOutputWords, kind); }

/// What a value may be named without quotes: "conv2d_1", "add.3".
inline bool is_of_value_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

}  // namespace metaprof
